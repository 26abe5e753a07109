#include "core/kv/prefix_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace foretoken {
namespace {

using ::testing::HasSubstr;

std::string FileOf(const PrefixFileHead& head, std::string_view kept) {
  std::string file = FormatPrefixFileHead(head);
  file += kept;
  PrefixDigest digest;
  digest.Update(file);
  return file + digest.Finish();
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

PrefixFileHead Head() {
  return {.model = "0123abcd",
          .adapter = "ef",
          .adapter_scale = 0.5F,
          .numbers = "cpu, portable",
          .owner = "alice",
          .tokens = {3, 1, 4, 1, 5},
          .blocks = 2,
          .bytes = 8};
}

TEST(PrefixFile, SaysWhatWasWritten) {
  const std::string file = FileOf(Head(), "12345678");
  const auto read = ParsePrefixFile(BytesOf(file), "x");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->head.model, "0123abcd");
  EXPECT_EQ(read->head.adapter, "ef");
  EXPECT_EQ(read->head.adapter_scale, 0.5F);
  EXPECT_EQ(read->head.numbers, "cpu, portable");
  EXPECT_EQ(read->head.owner, "alice");
  EXPECT_EQ(read->head.tokens, Head().tokens);
  EXPECT_EQ(read->head.blocks, 2U);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(read->kept.data()), read->kept.size()),
            "12345678");
  EXPECT_TRUE(CheckPrefixDigest(BytesOf(file), "x").ok());
}

TEST(PrefixFile, NoFileThatWasCutOffIsTaken) {
  const std::string file = FileOf(Head(), "12345678");
  for (std::size_t length = 0; length < file.size(); ++length) {
    const auto read = ParsePrefixFile(BytesOf(file).first(length), "x");
    ASSERT_FALSE(read.ok()) << length;
    EXPECT_THAT(read.error().message, HasSubstr("'x' is "));
  }
  EXPECT_FALSE(ParsePrefixFile(BytesOf(file + "!"), "x").ok());
}

TEST(PrefixFile, NoChangeOfAByteIsTaken) {
  const std::string file = FileOf(Head(), "12345678");
  std::mt19937 random(1);
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ (1 << random() % 8));
    const auto read = ParsePrefixFile(BytesOf(changed), "x");
    if (read.ok()) {
      EXPECT_FALSE(CheckPrefixDigest(BytesOf(changed), "x").ok()) << at;
    }
  }
}

TEST(PrefixFile, LengthsThatNoFileHasAreRefused) {
  // 4 GB of tokens, and more bytes than 64 bits can count.
  std::string file = FileOf(Head(), "12345678");
  const std::size_t tokens = FormatPrefixFileHead(Head()).size() - 12 - 5 * 4 - 4;
  for (int i = 0; i < 4; ++i) file[tokens + i] = '\xff';
  EXPECT_FALSE(ParsePrefixFile(BytesOf(file), "x").ok());
  PrefixFileHead huge = Head();
  huge.bytes = ~std::uint64_t{0} - 3;
  EXPECT_FALSE(ParsePrefixFile(BytesOf(FileOf(huge, "1234")), "x").ok());
}

TEST(PrefixFile, AnotherVersionAndTokensThatAreNoneAreRefused) {
  std::string file = FileOf(Head(), "12345678");
  file[8] = 2;
  EXPECT_THAT(ParsePrefixFile(BytesOf(file), "x").error().message, HasSubstr("version 2"));
  PrefixFileHead head = Head();
  head.tokens[2] = -1;
  EXPECT_FALSE(ParsePrefixFile(BytesOf(FileOf(head, "12345678")), "x").ok());
  head.tokens.clear();
  EXPECT_FALSE(ParsePrefixFile(BytesOf(FileOf(head, "12345678")), "x").ok());
}

}  // namespace
}  // namespace foretoken
