#include "core/weights/write_safetensors.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/files/read_file.h"
#include "base/files/temporary_testing.h"
#include "core/tensor/half.h"
#include "core/weights/safetensors.h"
#include "json/json.h"

namespace foretoken {
namespace {

TEST(WriteSafetensors, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  const std::array<BFloat16, 6> halves = {1, 2, 3, 4, 5, 6};
  const std::array<std::uint8_t, 3> bytes = {7, 8, 9};
  const std::array entries = {
      SafetensorsEntry{"b", "U8", {3}, std::as_bytes(std::span(bytes))},
      SafetensorsEntry{"a", "BF16", {3, 2}, std::as_bytes(std::span(halves))},
      SafetensorsEntry{"none", "BF16", {0, 2}, {}}};
  const auto path = folder.path() / "some.safetensors";
  const Status written = WriteSafetensors(path, {{"format", "1"}, {"layers", "2,3"}}, entries);
  ASSERT_TRUE(written.ok()) << written.error().message;
  const auto file = TensorFile::Open(path, ParseSafetensors);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto& tensors = file->holds.tensors;
  ASSERT_EQ(tensors.count("a"), 1U);
  const auto& a = tensors.find("a")->second;
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(std::memcmp(a.data, halves.data(), sizeof(halves)), 0);
  const auto& b = file->holds.bytes.find("b")->second;
  EXPECT_EQ(std::memcmp(b.data.data(), bytes.data(), sizeof(bytes)), 0);
  const std::string whole = ReadFile(path.string()).value();
  const auto header = Json::Parse(whole.substr(8, whole.find_last_of('}') - 7));
  EXPECT_EQ(header["__metadata__"]["layers"], "2,3");
}

TEST(WriteSafetensors, SaysWhereItCannotWrite) {
  const TemporaryFolder folder;
  const Status written = WriteSafetensors(folder.path() / "not" / "there.safetensors", {}, {});
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("there.safetensors"), std::string::npos)
      << written.error().message;
}

}  // namespace
}  // namespace foretoken
