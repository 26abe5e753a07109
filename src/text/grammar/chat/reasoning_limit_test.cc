#include "text/grammar/chat/reasoning_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foretoken/chat_format.h"
#include "text/grammar/grammar.h"
#include "text/grammar/grammar_text.h"
#include "text/grammar/tokens/grammar_constraint.h"

namespace foretoken {
namespace {

// Single bytes, and some words; token 0 ends a text.
class Words {
 public:
  Words() {
    names_ = {"", "<t>", "</t>", "so", "yes", "</t", " \n"};
    for (int byte = 0; byte < 256; ++byte) names_.emplace_back(1, static_cast<char>(byte));
    const std::vector<std::string_view> views(names_.begin(), names_.end());
    vocabulary_ = std::make_shared<ConstraintVocabulary>(
        ConstraintVocabulary{.trie = TokenTrie(views), .end_tokens = {0}});
  }
  Token Of(std::string_view name) const {
    return static_cast<Token>(std::ranges::find(names_, name) - names_.begin());
  }
  Result<std::shared_ptr<GrammarConstraint>> Compile(const std::string& grammar) const {
    return GrammarConstraint::Create(grammar, vocabulary_);
  }
  // Which tokens may follow `cursor` and `path`.
  std::vector<std::string> After(const GrammarCursor& cursor,
                                 const std::vector<Token>& path = {}) const {
    std::int64_t steps = 1 << 30;
    EXPECT_TRUE(cursor.Prepare(path, &steps));
    std::vector<std::string> allowed;
    const auto mask = cursor.Mask(path);
    for (std::size_t token = 0; token < names_.size(); ++token) {
      if ((mask[token / 64] >> (token % 64) & 1) != 0) allowed.push_back(names_[token]);
    }
    EXPECT_EQ(cursor.Refused(path), allowed.empty());
    return allowed;
  }

 private:
  std::vector<std::string> names_;
  std::shared_ptr<const ConstraintVocabulary> vocabulary_;
};

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kAnything = "root ::= .*\n";

TEST(ReasoningLimit, EndsThoughtsAfterTheirLastToken) {
  const Words words;
  const auto constraint =
      words.Compile(std::string("@reasoning 2 begun \"<t>\" \"</t>\" \"so.\"\n") + kAnything);
  ASSERT_TRUE(constraint.ok()) << constraint.error().message;
  GrammarCursor cursor(*constraint, false);
  const Token so = words.Of("so");
  EXPECT_THAT(words.After(cursor), SizeIs(testing::Gt(100)));
  // The same along a path as by what was pushed.
  const std::vector<Token> ending = {so, so, so, words.Of("."), words.Of("</t>")};
  for (std::size_t i = 2; i < ending.size(); ++i) {
    const std::vector<Token> path(ending.begin(), ending.begin() + i);
    EXPECT_EQ(words.After(cursor, path).size(), 1U);
  }
  EXPECT_THAT(words.After(cursor, ending), SizeIs(testing::Gt(100)));
  cursor.Push(so);
  EXPECT_THAT(words.After(cursor), SizeIs(testing::Gt(100)));
  cursor.Push(so);
  EXPECT_THAT(words.After(cursor), ElementsAre("so"));
  cursor.Push(so);
  EXPECT_THAT(words.After(cursor), ElementsAre("."));
  cursor.Push(words.Of("."));
  EXPECT_THAT(words.After(cursor), ElementsAre("</t>"));
  cursor.Push(words.Of("</t>"));
  EXPECT_THAT(words.After(cursor), SizeIs(testing::Gt(100)));
}

TEST(ReasoningLimit, CountsThoughtsThatTheTextOpensAllTogether) {
  const Words words;
  const auto constraint = words.Compile(std::string("@reasoning 3 \"<t>\" \"</t>\"\n") + kAnything);
  ASSERT_TRUE(constraint.ok()) << constraint.error().message;
  GrammarCursor cursor(*constraint, false);
  for (const char* word : {" \n", "<t>", "so", "</t>", " \n", "<t>"}) cursor.Push(words.Of(word));
  EXPECT_THAT(words.After(cursor), SizeIs(testing::Gt(100)));  // "so" and "</t>" were two.
  cursor.Push(words.Of("yes"));
  EXPECT_THAT(words.After(cursor), ElementsAre("</t>"));
  cursor.Push(words.Of("</t>"));
  cursor.Push(words.Of("<t>"));
  EXPECT_THAT(words.After(cursor), ElementsAre("</t>"));  // None are left.
}

TEST(ReasoningLimit, WhatIsSaidIsNotCounted) {
  const Words words;
  const auto constraint = words.Compile(std::string("@reasoning 0 \"<t>\" \"</t>\"\n") + kAnything);
  ASSERT_TRUE(constraint.ok()) << constraint.error().message;
  GrammarCursor cursor(*constraint, false);
  for (const char* word : {"yes", "<t>", "so"}) {
    cursor.Push(words.Of(word));
    EXPECT_THAT(words.After(cursor), SizeIs(testing::Gt(100)));
  }
  GrammarCursor thinks(*constraint, false);
  thinks.Push(words.Of("<t>"));
  EXPECT_THAT(words.After(thinks), ElementsAre("</t>"));
}

TEST(ReasoningLimit, ACharacterIsEndedFirst) {
  const Words words;
  const auto constraint =
      words.Compile(std::string("@reasoning 1 begun \"<t>\" \"</t>\"\n") + kAnything);
  ASSERT_TRUE(constraint.ok()) << constraint.error().message;
  GrammarCursor cursor(*constraint, false);
  cursor.Push(words.Of("\xE2"));
  EXPECT_THAT(words.After(cursor), SizeIs(64));
  cursor.Push(words.Of("\x82"));
  EXPECT_THAT(words.After(cursor), SizeIs(64));
  cursor.Push(words.Of("\xAC"));
  EXPECT_THAT(words.After(cursor), ElementsAre("</t>"));
}

TEST(ReasoningLimit, AMarkOfSeveralTokensIsFound) {
  const Words words;
  const auto constraint =
      words.Compile("@reasoning 9 begun \"<t>\" \"</t>\"\nroot ::= [^>]* \">\" \"yes\"");
  ASSERT_TRUE(constraint.ok()) << constraint.error().message;
  GrammarCursor cursor(*constraint, false);
  for (const char* word : {"<", "</t", ">"}) cursor.Push(words.Of(word));
  EXPECT_THAT(words.After(cursor), ElementsAre("yes", "y"));
}

TEST(ReasoningLimit, IsWrittenAsItIsRead) {
  Grammar grammar = *ParseGrammar("root ::= \"a\"");
  grammar.reasoning = {.tokens = 7, .begun = true, .open = "<t>", .close = "\"\n", .message = "é"};
  const auto read = ParseGrammar(GrammarText(grammar));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->reasoning, grammar.reasoning);
}

TEST(ReasoningLimit, RefusesWhatIsNone) {
  const Words words;
  const auto error = [&](const std::string& limit) {
    const auto constraint = words.Compile(limit + "\nroot ::= \"a\"");
    return constraint.ok() ? std::string("no error") : constraint.error().message;
  };
  EXPECT_THAT(error("@reasoning \"a\" \"b\""), HasSubstr("needs a number of tokens"));
  EXPECT_THAT(error("@reasoning 3 \"a\""), HasSubstr("needs the two marks"));
  EXPECT_THAT(error("@reasoning 3 \"a\" \"b\"\n@reasoning 3 \"a\" \"b\""), HasSubstr("twice"));
  EXPECT_THAT(error("@reasoning 99999999999 \"a\" \"b\""), HasSubstr("counts to 16777216"));
  EXPECT_THAT(error("@reasoning 3 \"a\" \"b\" \"cab\""), HasSubstr("must not contain"));
}

TEST(ReasoningLimit, AnAnswerOfAFormatWithThoughtsHasOne) {
  AnswerRules rules;
  rules.budget = {.tokens = 5, .message = "Enough."};
  EXPECT_EQ(*AnswerGrammar(rules), "");  // There is nothing to count.
  rules.reading.format = FindChatFormat("<think></think>");
  rules.reading.in_reasoning = true;
  const auto free = ParseGrammar(*AnswerGrammar(rules));
  ASSERT_TRUE(free.ok()) << free.error().message;
  const ReasoningLimit limit{
      .tokens = 5, .begun = true, .open = "<think>", .close = "</think>", .message = "Enough."};
  EXPECT_EQ(free->reasoning, limit);
  rules.content_grammar = "root ::= \"yes\"";
  EXPECT_EQ(ParseGrammar(*AnswerGrammar(rules))->reasoning, limit);
  rules.content_grammar = "@reasoning 1 \"a\" \"b\"\nroot ::= \"yes\"";
  EXPECT_FALSE(AnswerGrammar(rules).ok());
}

}  // namespace
}  // namespace foretoken
