#include "text/tokenizer/bpe/character_bpe.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files/temporary_testing.h"
#include "json/json.h"
#include "text/tokenizer/bpe/bpe_tokenizer.h"
#include "text/tokenizer/tokenizer_testing.h"
#include "text/tokenizer/vocabulary_to_embed.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Token kByte0 = 3;
// "▁", "a", "b", "ab", "▁ab", behind the bytes.
constexpr Token kSpace = kByte0 + 256;
constexpr Token kA = kSpace + 1;
constexpr Token kB = kA + 1;
constexpr Token kAb = kB + 1;
constexpr Token kSpaceAb = kAb + 1;
constexpr Token kMark = kSpaceAb + 1;

Json Replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

// As Gemma's are: nothing is put before a text.
Json SmallCharacterBpe() {
  Json vocab = {{"<unk>", 0}, {"<bos>", 1}, {"<eos>", 2}};
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = kByte0 + byte;
  Token id = kSpace;
  for (const char* token : {"\u2581", "a", "b", "ab", "\u2581ab"}) vocab[token] = id++;
  Json added = Json::array();
  for (const auto& [name, token] : {std::pair{"<bos>", 1}, {"<eos>", 2}, {"<|x|>", int{kMark}}}) {
    added.push_back({{"id", token}, {"content", name}, {"special", true}, {"normalized", false}});
  }
  return {
      {"model",
       {{"type", "BPE"},
        {"byte_fallback", true},
        {"fuse_unk", true},
        {"unk_token", "<unk>"},
        {"vocab", vocab},
        {"merges", {"a b", "\u2581 ab"}}}},
      {"added_tokens", added},
      {"normalizer", Replace(" ", "\u2581")},
      {"pre_tokenizer",
       {{"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "MergedWithPrevious"}}},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders", {Replace("\u2581", " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}}}};
}

Result<std::unique_ptr<Tokenizer>> ParseCharacterBpe(const Json& json) {
  return ParseTokenizerJson(json.dump(), "test.json", {});
}

std::vector<Token> Encode(const Json& json, std::string_view text) {
  const auto tokenizer = ParseCharacterBpe(json);
  FT_CHECK(tokenizer.ok(), "{}", tokenizer.error().message);
  return (*tokenizer)->Encode(text, false, true);
}

TEST(CharacterBpe, MergesCharactersAndFallsBackToBytes) {
  const Json json = SmallCharacterBpe();
  EXPECT_THAT(Encode(json, "ab ab a"), ElementsAre(kAb, kSpaceAb, kSpace, kA));
  EXPECT_THAT(Encode(json, "a\n"), ElementsAre(kA, kByte0 + '\n'));
  EXPECT_THAT(Encode(json, "\u00E9\xFF"), ElementsAre(kByte0 + 0xC3, kByte0 + 0xA9, kByte0 + 0xFF));
  EXPECT_THAT(Encode(json, "a<|x|> b"), ElementsAre(kA, kMark, kSpace, kB));
  EXPECT_THAT(Encode(json, ""), ElementsAre());
}

TEST(CharacterBpe, SpacesBeforeTexts) {
  Json json = SmallCharacterBpe();
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"split", false}};
  json["pre_tokenizer"]["prepend_scheme"] = "first";
  EXPECT_THAT(Encode(json, "ab<|x|>ab"), ElementsAre(kSpaceAb, kMark, kAb));
  EXPECT_THAT(Encode(json, " ab"), ElementsAre(kSpaceAb));
  json["pre_tokenizer"]["prepend_scheme"] = "always";
  EXPECT_THAT(Encode(json, "ab<|x|>ab"), ElementsAre(kSpaceAb, kMark, kSpaceAb));
  json["pre_tokenizer"] = nullptr;
  json["normalizer"] = {
      {"type", "Sequence"},
      {"normalizers", {{{"type", "Prepend"}, {"prepend", "\u2581"}}, Replace(" ", "\u2581")}}};
  EXPECT_THAT(Encode(json, " ab"), ElementsAre(kSpace, kSpaceAb));
}

TEST(CharacterBpe, OutputsShowSpacesAndBytes) {
  Json json = SmallCharacterBpe();
  const Token outputs[] = {kSpaceAb, kByte0 + 0xC3, kByte0 + 0xA9, kSpace, kA};
  const auto shown = [&] {
    const auto tokenizer = ParseCharacterBpe(json).value();
    IncrementalDecoder decoder(tokenizer.get());
    std::string text;
    for (const Token token : outputs) text += decoder.Push(token);
    return text + decoder.Finish();
  };
  EXPECT_EQ(shown(), " ab\u00E9 a");
  json["decoder"]["decoders"].push_back(
      {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  EXPECT_EQ(shown(), "ab\u00E9 a");
}

TEST(CharacterBpe, WhatIsNotComputedIsNamed) {
  const auto with = [](const char* pointer, const Json& value) {
    Json json = SmallCharacterBpe();
    json.Place(pointer) = value;
    return json;
  };
  Json without_byte = SmallCharacterBpe();
  without_byte["model"]["vocab"].erase("<0x0A>");
  const std::pair<Json, const char*> cases[] = {
      {without_byte, "lacks the token '<0x0A>'"},
      {with("/normalizer", {{"type", "NFC"}}), R"(the normalizer {"type":"NFC"})"},
      {with("/normalizer", nullptr), "the pre_tokenizer {"},
      {with("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "_"}}),
       "the pre_tokenizer {"},
      {with("/decoder", nullptr), "the decoder leaves U+2581 as it is"},
      {with("/decoder", {{"type", "ByteLevel"}}), "the decoder {"},
      {with("/model/ignore_merges", true), "model.ignore_merges"},
      {with("/added_tokens/0", {{"id", 1}, {"content", "<a b>"}, {"normalized", true}}),
       "normalized of '<a b>'"},
  };
  for (const auto& [json, part] : cases) {
    const auto result = ParseCharacterBpe(json);
    ASSERT_FALSE(result.ok()) << part;
    EXPECT_THAT(result.error().message, HasSubstr(part));
  }
}

TEST(CharacterBpe, IsWrittenIntoModelFiles) {
  const TemporaryFolder folder;
  Json json = SmallCharacterBpe();
  std::ofstream(folder.path() / "tokenizer.json") << json.dump();
  const auto read = ReadVocabularyToEmbed(folder.path(), kMark + 3, {});
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->model, "gemma4");
  EXPECT_EQ(read->types[kByte0], EmbeddedVocabulary::kByte);
  EXPECT_EQ(read->types[kMark], EmbeddedVocabulary::kControl);
  EXPECT_EQ(read->types.back(), EmbeddedVocabulary::kUnused);
  const auto again = TokenizerFromEmbedded(read->View(), "m.gguf");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ((*again)->Encode(" ab<|x|>\n", true, true), Encode(json, " ab<|x|>\n"));

  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "\u2581"}};
  std::ofstream(folder.path() / "tokenizer.json") << json.dump();
  EXPECT_THAT(ReadVocabularyToEmbed(folder.path(), kMark, {}).error().message,
              HasSubstr("such files put no space before a text"));
}

}  // namespace
}  // namespace foretoken
