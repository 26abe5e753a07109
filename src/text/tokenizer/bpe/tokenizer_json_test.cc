#include <gmock/gmock.h>

#include "json/json.h"

#include "text/tokenizer/bpe/bpe_tokenizer.h"
#include "text/tokenizer/bpe/byte_alphabet.h"
#include "text/tokenizer/tokenizer_testing.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Token kStart = 260;
constexpr Token kEnd = 261;
constexpr Token kTool = 262;

/// All bytes by their value, then "he", "ll", "hell", "\xC3\xA9" and the added tokens.
Json SmallByteBpe() {
  Json vocabulary = Json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[SpellBytes(std::string(1, static_cast<char>(byte)))] = byte;
  }
  Json merges = Json::array();
  Token next = 256;
  for (const auto& [left, right] :
       {std::pair{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"\xC3", "\xA9"}}) {
    vocabulary[SpellBytes(std::string(left) + right)] = next++;
    merges.push_back(SpellBytes(left) + " " + SpellBytes(right));
  }
  const auto added = [](Token id, const char* content, bool special) {
    return Json{{"id", id}, {"content", content}, {"special", special}};
  };
  return {{"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"added_tokens",
           Json::array({added(kStart, "<|im_start|>", true), added(kEnd, "<|im_end|>", true),
                        added(kTool, "<tool>", false)})},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
}

Result<std::unique_ptr<Tokenizer>> ParseJson(const Json& json, const TokenizerConfig& config = {}) {
  return ParseTokenizerJson(json.dump(), "test.json", config);
}

std::unique_ptr<Tokenizer> MustParse(const Json& json, const TokenizerConfig& config = {}) {
  auto result = ParseJson(json, config);
  FT_CHECK(result.ok(), "{}", result.error().message);
  return std::move(result).value();
}

TEST(TokenizerJson, EncodesAndDecodes) {
  const auto tokenizer = MustParse(SmallByteBpe());
  EXPECT_EQ(tokenizer->vocabulary(), 263);
  EXPECT_THAT(tokenizer->Encode("hello", true, false), ElementsAre(258, 'o'));
  EXPECT_THAT(tokenizer->Encode(" \xC3\xA9", true, false), ElementsAre(' ', 259));
  EXPECT_EQ(tokenizer->TokenBytes(259), "\xC3\xA9");
  EXPECT_EQ(tokenizer->TokenName(259), "\u00C3\u00A9");
  EXPECT_EQ(tokenizer->TokenBytes(kStart), "");
  EXPECT_EQ(tokenizer->TokenBytes(kTool), "<tool>");
  EXPECT_EQ(tokenizer->TokenBytes(-1), "");
  EXPECT_EQ(tokenizer->TokenBytes(263), "");
  EXPECT_TRUE(tokenizer->IsSpecial(kStart));
  EXPECT_FALSE(tokenizer->IsSpecial(kTool));
  EXPECT_THAT(tokenizer->eos(), ElementsAre(kEnd));
  const std::string text = "hello\n<tool> caf\xC3\xA9 \xF0\x9F\x98\x80";
  EXPECT_EQ(DecodeAll(*tokenizer, tokenizer->Encode(text, true, true)), text);
  // Bytes that are not UTF-8 are kept, too.
  std::string bytes;
  for (const Token token : tokenizer->Encode("he\xFF\xC3ll\xE2\x82", false, false)) {
    bytes += tokenizer->TokenBytes(token);
  }
  EXPECT_EQ(bytes, "he\xFF\xC3ll\xE2\x82");
}

TEST(TokenizerJson, SpecialTokensOnlyWhereAsked) {
  const auto tokenizer = MustParse(SmallByteBpe());
  const std::string text = "he<|im_end|><tool>";
  EXPECT_THAT(tokenizer->Encode(text, false, true), ElementsAre(256, kEnd, kTool));
  const auto plain = tokenizer->Encode(text, false, false);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), kEnd), 0);
  EXPECT_EQ(plain.back(), kTool);
}

TEST(TokenizerJson, AddedTokensMaySwallowWhiteSpace) {
  Json json = SmallByteBpe();
  json["added_tokens"][1]["lstrip"] = true;
  json["added_tokens"][1]["rstrip"] = true;
  EXPECT_THAT(MustParse(json)->Encode("a \n<|im_end|>\t b", false, true),
              ElementsAre('a', kEnd, 'b'));
}

TEST(TokenizerJson, MergesMayBePairs) {
  Json json = SmallByteBpe();
  const std::string fingerprint = MustParse(json)->fingerprint();
  Json pairs = Json::array();
  for (const Json& merge : json["model"]["merges"]) {
    const auto text = merge.get<std::string>();
    const std::size_t space = text.find(' ');
    pairs.push_back({text.substr(0, space), text.substr(space + 1)});
  }
  json["model"]["merges"] = pairs;
  const auto tokenizer = MustParse(json);
  EXPECT_THAT(tokenizer->Encode("hello", false, false), ElementsAre(258, 'o'));
  EXPECT_EQ(tokenizer->fingerprint(), fingerprint);
  EXPECT_EQ(fingerprint.size(), 64U);
  std::swap(json["model"]["merges"][0], json["model"]["merges"][1]);
  EXPECT_NE(MustParse(json)->fingerprint(), fingerprint);
}

TEST(TokenizerJson, IgnoreMerges) {
  Json json = SmallByteBpe();
  json["model"]["merges"] = Json::array();
  EXPECT_THAT(MustParse(json)->Encode("hell", false, false), ElementsAre('h', 'e', 'l', 'l'));
  json["model"]["ignore_merges"] = true;
  EXPECT_THAT(MustParse(json)->Encode("hell", false, false), ElementsAre(258));
}

TEST(TokenizerJson, Nfc) {
  Json json = SmallByteBpe();
  const std::string decomposed = "e\xCC\x81";
  EXPECT_EQ(MustParse(json)->Encode(decomposed, false, false).size(), 3U);
  json["normalizer"] = {{"type", "NFC"}};
  EXPECT_THAT(MustParse(json)->Encode(decomposed, false, false), ElementsAre(259));
}

TEST(TokenizerJson, PrefixSpace) {
  Json json = SmallByteBpe();
  json["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_THAT(MustParse(json)->Encode("he", false, false), ElementsAre(' ', 256));
  EXPECT_THAT(MustParse(json)->Encode(" he", false, false), ElementsAre(' ', 256));
}

TEST(TokenizerJson, BosComesFromTheTemplateOrTheConfiguration) {
  Json json = SmallByteBpe();
  TokenizerConfig config;
  config.bos = "<|im_start|>";
  EXPECT_EQ(MustParse(json, config)->bos(), std::nullopt);
  config.add_bos = true;
  EXPECT_THAT(MustParse(json, config)->Encode("he", true, false), ElementsAre(kStart, 256));
  const Json step = {{"type", "TemplateProcessing"},
                     {"single", Json::array({{{"SpecialToken", {{"id", "<|im_start|>"}}}},
                                             {{"Sequence", {{"id", "A"}}}}})}};
  json["post_processor"] = {{"type", "Sequence"},
                            {"processors", Json::array({{{"type", "ByteLevel"}}, step})}};
  EXPECT_EQ(MustParse(json)->bos(), kStart);
  config.add_bos = false;
  EXPECT_EQ(MustParse(json, config)->bos(), std::nullopt);
}

// As Hugging Face's tokenizers have it; the other id stands for the same and is never made.
TEST(TokenizerJson, WhereAnAddedTokenHasAnotherIdTheVocabularyCounts) {
  Json json = SmallByteBpe();
  json["added_tokens"].push_back({{"id", 280}, {"content", "he"}, {"special", true}});
  json["model"]["vocab"][""] = 281;
  const auto tokenizer = MustParse(json);
  EXPECT_THAT(tokenizer->Encode("he", false, true), ElementsAre(256));
  EXPECT_TRUE(tokenizer->IsSpecial(256) && tokenizer->IsSpecial(280));
  EXPECT_EQ(tokenizer->TokenName(280), "he");
  EXPECT_EQ(tokenizer->TokenBytes(281), "");
  EXPECT_THAT(tokenizer->notes(),
              ElementsAre(HasSubstr("'he', token 280"), HasSubstr("token 281")));
}

TEST(TokenizerJson, UnsupportedFieldsAreNamed) {
  const auto with = [](const char* pointer, const Json& value) {
    Json json = SmallByteBpe();
    json.Place(pointer) = value;
    return json;
  };
  const std::pair<Json, std::string> cases[] = {
      {with("/model/type", "WordPiece"), "model.type 'WordPiece'"},
      {with("/model/byte_fallback", true), "beside model.byte_fallback"},
      {with("/model/fuse_unk", true), "model.fuse_unk"},
      {with("/model/dropout", 0.1), "model.dropout"},
      {with("/model/end_of_word_suffix", "</w>"), "model.end_of_word_suffix"},
      {with("/model/unk_token", "?!"), "model.unk_token"},
      {with("/model/vocab", Json::array()), "model.vocab"},
      {with("/model/vocab/a", -1), "model.vocab gives 'a'"},
      {with("/model/vocab/a", 98), "the same id 98"},
      {with("/model/vocab/a", 4'000'000), "far beyond"},
      {with("/model/merges/0", "h e l"), "model.merges"},
      {with("/model/merges/0", 7), "model.merges"},
      {with("/model/merges/0", "x y"), "merge 0 ('x' with 'y')"},
      {with("/normalizer", {{"type", "Lowercase"}}), "normalizer 'Lowercase'"},
      {with("/decoder", {{"type", "Metaspace"}}), "decoder 'Metaspace'"},
      {with("/pre_tokenizer", nullptr), "pre_tokenizer"},
      {with("/added_tokens/0/id", "x"), "added_tokens"},
      {with("/added_tokens/0/content", ""), "added token"},
      {with("/added_tokens/0/single_word", true), "single_word"},
      {Json::array(), "not a JSON object"},
      {Json::object(), "model"},
  };
  for (const auto& [json, part] : cases) {
    const auto result = ParseJson(json);
    ASSERT_FALSE(result.ok()) << part;
    EXPECT_THAT(result.error().message, HasSubstr("test.json"));
    EXPECT_THAT(result.error().message, HasSubstr(part));
  }
}

TEST(TokenizerJson, AnyTruncationIsAnError) {
  const std::string text = SmallByteBpe().dump();
  for (std::size_t size = 0; size < text.size(); size += 13) {
    EXPECT_FALSE(ParseTokenizerJson(text.substr(0, size), "test.json", {}).ok());
  }
  const std::string deep(1'000'000, '[');
  EXPECT_FALSE(ParseTokenizerJson(deep, "test.json", {}).ok());
}

TEST(CheckSameVocabulary, NamesTheFirstDifference) {
  const auto target = MustParse(SmallByteBpe());
  EXPECT_TRUE(CheckSameVocabulary(*target, *MustParse(SmallByteBpe())).ok());

  Json swapped = SmallByteBpe();
  swapped["model"]["vocab"]["a"] = 98;
  swapped["model"]["vocab"]["b"] = 97;
  const Status status = CheckSameVocabulary(*target, *MustParse(swapped));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message,
              HasSubstr("token 97: the target spells it 'a', the draft 'b'"));

  // Special tokens beyond the common part do no harm; ordinary ones are another vocabulary.
  Json longer = SmallByteBpe();
  longer["added_tokens"].push_back({{"id", 300}, {"content", "<pad>"}, {"special", true}});
  EXPECT_TRUE(CheckSameVocabulary(*target, *MustParse(longer)).ok());
  EXPECT_TRUE(CheckSameVocabulary(*MustParse(longer), *target).ok());
  longer["added_tokens"][3]["special"] = false;
  const Status extra = CheckSameVocabulary(*target, *MustParse(longer));
  ASSERT_FALSE(extra.ok());
  EXPECT_THAT(extra.error().message, HasSubstr("token 300: the draft spells it '<pad>'"));

  // Files of one family do not agree on which marks are special.
  Json marks = SmallByteBpe();
  marks["added_tokens"][0]["special"] = false;
  EXPECT_TRUE(CheckSameVocabulary(*target, *MustParse(marks)).ok());
  Json word = SmallByteBpe();
  word["added_tokens"].push_back({{"id", 256}, {"content", "he"}, {"special", true}});
  EXPECT_THAT(CheckSameVocabulary(*target, *MustParse(word)).error().message,
              HasSubstr("token 256, 'he'"));
}

}  // namespace
}  // namespace foretoken
