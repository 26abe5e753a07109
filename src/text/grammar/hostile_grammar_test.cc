// Grammars that read a text in ever more ways: small where that can be, and else within a budget
// that is the same wherever it is met.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "text/grammar/tokens/grammar_constraint.h"

namespace foretoken {
namespace {

constexpr std::int64_t kUnlimitedWork = std::numeric_limits<std::int64_t>::max() / 2;
constexpr Token kA = 'a' + 1;  // Token 0 ends the text, the bytes follow.

// The bytes, and all texts of two to four of these letters.
std::shared_ptr<ConstraintVocabulary> HostileVocabulary() {
  std::vector<std::string> tokens = {""};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(std::string(1, static_cast<char>(byte)));
  std::vector<std::string> longest = {""};
  for (int size = 1; size <= 4; ++size) {
    std::vector<std::string> longer;
    for (const std::string& text : longest) {
      for (const char letter : {'a', 'b', 'c', 'd', 'e', ' '}) longer.push_back(text + letter);
    }
    if (size > 1) tokens.insert(tokens.end(), longer.begin(), longer.end());
    longest = longer;
  }
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<ConstraintVocabulary>(
      ConstraintVocabulary{.trie = TokenTrie(views), .end_tokens = {0}});
}

// Each rule is twice the one behind it.
std::string Doubling(int rules, const std::string& last) {
  std::string text = "root ::= a0\n";
  for (int i = 0; i < rules; ++i) text += fmt::format("a{} ::= a{} a{}\n", i, i + 1, i + 1);
  return text + fmt::format("a{} ::= {}\n", rules, last);
}

std::shared_ptr<GrammarConstraint> Compile(const std::string& grammar) {
  auto constraint = GrammarConstraint::Create(grammar, HostileVocabulary());
  EXPECT_TRUE(constraint.ok()) << constraint.error().message;
  return *constraint;
}

bool Allows(std::span<const std::uint64_t> mask, Token token) {
  return (mask[token / 64] >> token % 64 & 1) != 0;
}

constexpr const char* kPalindromes =
    "root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"a\" | \"b\" | \"\"";

std::vector<std::string> Hostile() {
  return {"root ::= (\"a\"?){5000}", Doubling(20, "\"a\"?"), Doubling(20, "\"a\""), kPalindromes,
          "root ::= [ab]* \"a\" [ab]{100}"};
}

TEST(HostileGrammars, TakeLittleAtEveryToken) {
  for (const std::string& grammar : Hostile()) {
    const auto constraint = Compile(grammar);
    GrammarCursor cursor(constraint, false);
    std::int64_t most = 0;
    int tokens = 0;
    for (; tokens < 5000 && cursor.MayContinue(); ++tokens) {
      std::int64_t left = kUnlimitedWork;
      ASSERT_TRUE(cursor.Prepare({}, &left));
      most = std::max(most, kUnlimitedWork - left);
      if (!Allows(cursor.Mask({}), kA)) break;
      cursor.Push(kA);
    }
    EXPECT_LT(most, 1 << 18) << grammar;  // What a round has for them.
    EXPECT_GE(tokens, 128) << grammar;
  }
}

TEST(HostileGrammars, RepetitionsOfWhatMayBeEmptyAreCounted) {
  for (const std::string& grammar :
       {std::string("root ::= (\"a\"?){64}"), std::string("root ::= ((\"a\"? | \"\"){4}){4,16}"),
        Doubling(6, "\"a\"?"), Doubling(6, "\"a\" | \"\""),
        std::string(
            "root ::= a?\na ::= b b | b\nb ::= c{4} | c{1,3}\nc ::= d | d d d d | d d d | d d"
            "\nd ::= e e | e\ne ::= \"a\""),
        std::string("root ::= \"a\"{0,30} (\"a\"?){30} (\"\" | \"a\") \"a\"{,3}")}) {
    const auto automaton = Automaton::Compile(*ParseGrammar(grammar), 4);
    ASSERT_TRUE(automaton.ok());
    StateGraph graph(&*automaton);
    auto state = graph.start();
    std::size_t threads = 0;
    for (int i = 0; i < 64; ++i) {
      ASSERT_TRUE(graph.MayEnd(state)) << grammar;
      threads = std::max(threads, graph.threads(state).size());
      state = graph.Next(state, 'a');
    }
    EXPECT_TRUE(graph.MayEnd(state)) << grammar;
    EXPECT_FALSE(graph.MayContinue(state)) << grammar;
    EXPECT_LE(threads, 2) << grammar;
  }
}

TEST(TokenMask, IsTheSameInPieces) {
  for (const std::string& grammar :
       {std::string(kPalindromes), std::string("root ::= [ab ]* \"a\" .{30}"),
        std::string("root ::= \"a\" root? root? | \"b\" [c-e]{2,} \" \""),
        std::string("root ::= ([ab]{17} \" \"){30} | (x \"b\"){,40} \"c\"\nx ::= \"a\"+")}) {
    GrammarCursor whole(Compile(grammar), true);
    GrammarCursor pieces(Compile(grammar), true);
    int paused = 0;
    for (int i = 0; i < 40; ++i) {
      for (std::int64_t left = 50; !pieces.Prepare({}, &left); left = 50) ++paused;
      const auto mask = whole.Mask({});
      ASSERT_TRUE(std::ranges::equal(mask, pieces.Mask({}))) << grammar << i;
      if (!Allows(mask, kA)) break;
      whole.Push(kA);
      pieces.Push(kA);
    }
    EXPECT_GT(paused, 10) << grammar;
  }
}

// How many tokens there are, of this one only, until the grammar can not be followed.
int TokensUntilRefused(GrammarCursor cursor, bool looks_about) {
  int tokens = 0;
  for (; tokens < 3000; ++tokens) {
    if (looks_about) {
      for (const Token token : {kA + 1, 300 + tokens, kA}) {
        const std::vector<Token> path = {token, kA};
        std::int64_t some = 5000;
        cursor.Prepare(path, &some);
      }
    }
    const auto mask = cursor.Mask({});
    if (cursor.Refused({})) return tokens;
    if (!Allows(mask, kA)) break;
    cursor.Push(kA);
    if (!cursor.MayContinue()) return tokens;
  }
  return -1;
}

TEST(GrammarCursor, EndsAtTheSameTokenWhateverElseWasAsked) {
  // No reading of a text may end before the "!", and there are ever more.
  const std::string grammar = "root ::= x \"!\"\nx ::= [a-e] x? x?";
  const auto fresh = Compile(grammar);
  const int tokens = TokensUntilRefused(GrammarCursor(fresh, false), false);
  EXPECT_GT(tokens, 10);
  EXPECT_LT(tokens, 3000);
  EXPECT_EQ(TokensUntilRefused(GrammarCursor(fresh, false), true), tokens);
  EXPECT_EQ(TokensUntilRefused(GrammarCursor(Compile(grammar), false), true), tokens);
}

TEST(GrammarConstraint, RefusesAGrammarWhoseFirstMaskIsTooCostly) {
  // Each of thousands of rules begins in every letter and in the next rule.
  std::string grammar = "root ::= r0\n";
  for (int i = 0; i < 3000; ++i) {
    grammar += fmt::format("r{} ::= [a-e ] (\"x\" | r{}) \"{}\" | r{}? [a-e ]+ \"{}\"\n", i, i + 1,
                           i, i + 1, i);
  }
  const auto constraint =
      GrammarConstraint::Create(grammar + "r3000 ::= \"a\"", HostileVocabulary());
  ASSERT_FALSE(constraint.ok());
  EXPECT_THAT(constraint.error().message, testing::HasSubstr("the grammar is too ambiguous"));
}

}  // namespace
}  // namespace foretoken
