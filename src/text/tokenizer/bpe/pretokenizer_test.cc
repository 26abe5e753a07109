#include "text/tokenizer/bpe/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "json/json.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<PreTokenizer> FromText(std::string_view text) {
  return PreTokenizer::FromJson(Json::Parse(text));
}

PreTokenizer MustReadSteps(std::string_view text) {
  auto result = FromText(text);
  FT_CHECK(result.ok(), "{}", result.error().message);
  return std::move(result).value();
}

Json SplitStep(std::string_view regex, std::string_view behavior = "Isolated",
               bool invert = false) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", behavior},
          {"invert", invert}};
}

const Json kBytesOnly = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};

PreTokenizer MustSplit(const Json& split) {
  auto result = PreTokenizer::FromJson(
      {{"type", "Sequence"}, {"pretokenizers", Json::array({split, kBytesOnly})}});
  FT_CHECK(result.ok(), "{}", result.error().message);
  return std::move(result).value();
}

TEST(PreTokenizer, Gpt2) {
  const PreTokenizer gpt2 = MustReadSteps(R"({"type": "ByteLevel", "add_prefix_space": false})");
  EXPECT_THAT(gpt2.Split("I'd say  so: 2024!\n\n x"),
              ElementsAre("I", "'d", " say", " ", " so", ":", " 2024", "!", "\n\n", " x"));
  EXPECT_THAT(gpt2.Split("I'D"), ElementsAre("I", "'", "D"));
  EXPECT_THAT(gpt2.Split("na\xC3\xAFve \xE4\xB8\x96\xE7\x95\x8C  "),
              ElementsAre("na\xC3\xAFve", " \xE4\xB8\x96\xE7\x95\x8C", "  "));
  EXPECT_TRUE(gpt2.Split("").empty());
}

TEST(PreTokenizer, Llama3) {
  const PreTokenizer llama3 = MustSplit(SplitStep(kLlama3Pattern));
  EXPECT_THAT(llama3.Split("I'D pay $12345,\r\n\tok  \n\n  now (yes)"),
              ElementsAre("I", "'D", " pay", " $", "123", "45", ",\r\n", "\tok", "  \n\n", " ",
                          " now", " (", "yes", ")"));
  // U+017F is an s whatever the case; U+180E is no white space.
  EXPECT_THAT(llama3.Split("it'\xC5\xBF"), ElementsAre("it", "'\xC5\xBF"));
  EXPECT_THAT(llama3.Split("!\xE1\xA0\x8E"), ElementsAre("!\xE1\xA0\x8E"));
  EXPECT_THAT(llama3.Split("\xC2\x85"), ElementsAre("\xC2\x85"));
}

TEST(PreTokenizer, Qwen2TakesDigitsOneByOne) {
  const PreTokenizer qwen2 = PreTokenizer::FromPattern(kQwen2Pattern);
  EXPECT_THAT(qwen2.Split("a 12 b."), ElementsAre("a", " ", "1", "2", " b", "."));
}

TEST(PreTokenizer, SmolLm2IsolatesDigitsBeforeGpt2) {
  const PreTokenizer smollm2 = MustReadSteps(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]})");
  EXPECT_THAT(smollm2.Split("in 2024 x"), ElementsAre("in", " ", "2", "0", "2", "4", " x"));
}

TEST(PreTokenizer, StepsAfterByteLevelSeeTheByteAlphabet) {
  const PreTokenizer falcon3 = MustReadSteps(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Punctuation", "behavior": "Contiguous"},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
      {"type": "Digits", "individual_digits": true}]})");
  EXPECT_THAT(falcon3.Split("(a, b)?! 42"), ElementsAre("(", "a", ",", " b", ")?!", " ", "4", "2"));
  // The second byte of U+00F2 is spelled as a superscript two, which is a digit; no byte of U+0663,
  // an Arabic digit, is spelled as one.
  EXPECT_THAT(falcon3.Split("x\xC3\xB2y"), ElementsAre("x\xC3", "\xB2", "y"));
  EXPECT_THAT(falcon3.Split("\xD9\xA3\xD9\xA3"), ElementsAre("\xD9\xA3\xD9\xA3"));
}

TEST(PreTokenizer, RulesTellWhatCutsOtherwise) {
  const auto rules = [](const char* text) { return MustReadSteps(text).rules(); };
  const std::string gpt2 = rules(R"({"type": "ByteLevel", "add_prefix_space": false})");
  // What changes no word changes no rule.
  EXPECT_EQ(rules(R"({"type": "Sequence", "pretokenizers": [
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]})"),
            gpt2);
  EXPECT_EQ(PreTokenizer::FromPattern(kGpt2Pattern).rules(), gpt2);
  EXPECT_NE(rules(R"({"type": "ByteLevel"})"), gpt2);
  EXPECT_NE(rules(R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})"), gpt2);
  const auto digits = [&](const char* before, const char* after) {
    return rules(fmt::format(R"({{"type": "Sequence", "pretokenizers": [{}
        {{"type": "ByteLevel", "add_prefix_space": false}}{}]}})",
                             before, after)
                     .c_str());
  };
  EXPECT_NE(digits(R"({"type": "Digits"},)", ""), digits("", R"(, {"type": "Digits"})"));
}

TEST(PreTokenizer, SplitBehaviors) {
  EXPECT_THAT(MustSplit(SplitStep("-+")).Split("a--b-"), ElementsAre("a", "--", "b", "-"));
  EXPECT_THAT(MustSplit(SplitStep("-+", "Removed")).Split("a--b-"), ElementsAre("a", "b"));
  EXPECT_THAT(MustSplit(SplitStep("\\w+", "Removed", true)).Split("a--b-"), ElementsAre("a", "b"));
  const Json literal = {
      {"type", "Split"}, {"pattern", {{"String", ".*"}}}, {"behavior", "Isolated"}};
  EXPECT_THAT(MustSplit(literal).Split("a.*b"), ElementsAre("a", ".*", "b"));
  // Empty matches cut nothing.
  EXPECT_THAT(MustSplit(SplitStep("x*")).Split("axxb"), ElementsAre("a", "xx", "b"));
}

TEST(PreTokenizer, WhatIsNotSupportedIsNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {"null", "not an object"},
      {R"({"type": "Metaspace"})", "'Metaspace'"},
      {R"({"type": "Digits"})", "no ByteLevel"},
      {R"({"type": "Sequence"})", "pretokenizers"},
      {R"({"type": "Sequence", "pretokenizers": [{"type": "Sequence"}]})", "'Sequence'"},
      {R"({"type": "Split", "pattern": {"Regex": "a"}, "behavior": "MergedWithNext"})",
       "'MergedWithNext'"},
      {R"({"type": "Split", "pattern": {}, "behavior": "Isolated"})", "Regex or a String"},
      {R"({"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"})",
       "does not compile"},
      {R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "ByteLevel"}]})",
       "two ByteLevel steps"},
      {R"({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]})",
       "add_prefix_space must be the first step"},
      {R"({"type": "Punctuation", "behavior": "Removed"})", "Punctuation with behavior 'Removed'"},
  };
  for (const auto& [text, part] : cases) {
    const auto result = FromText(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_THAT(result.error().message, HasSubstr("pre_tokenizer")) << text;
    EXPECT_THAT(result.error().message, HasSubstr(part)) << text;
  }
}

TEST(PreTokenizer, ExplodingPatternsAreRefused) {
  for (const char* pattern : {"(a+)+b", "(\\s|\\s\\s)+x", "(?:a|aa|a?)*[0-9]"}) {
    const auto regex = Regex::Compile(pattern, /*literal=*/false);
    ASSERT_FALSE(regex.ok()) << pattern;
    EXPECT_THAT(regex.error().message, HasSubstr("too many steps"));
  }
  EXPECT_FALSE(Regex::Compile(std::string(5000, 'a'), /*literal=*/true).ok());
  EXPECT_FALSE(Regex::Compile("\\C", /*literal=*/false).ok());
}

// A pattern that explodes only on letters which loading does not try: the text stays whole.
TEST(PreTokenizer, LimitsHoldWhileMatching) {
  const PreTokenizer split = MustSplit(SplitStep("(q+)+b"));
  const std::string rest = " " + std::string(64, 'q') + " b";
  EXPECT_THAT(split.Split("ab qb" + rest), ElementsAre("ab ", "qb", rest));
}

TEST(PreTokenizer, LongTextsTakeLinearTime) {
  const PreTokenizer llama3 = PreTokenizer::FromPattern(kLlama3Pattern);
  for (const char unit : {' ', 'a', '1', '\n', '.'}) {
    const std::string text(300'000, unit);
    std::size_t size = 0;
    for (const std::string_view word : llama3.Split(text)) size += word.size();
    EXPECT_EQ(size, text.size());
  }
}

}  // namespace
}  // namespace foretoken
