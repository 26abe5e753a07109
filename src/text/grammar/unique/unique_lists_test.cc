// Lists whose items all differ: what they take for the same item, and masks against a search
// through all texts that a grammar lets through.

#include "text/grammar/unique/unique_lists.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "text/grammar/tokens/grammar_constraint.h"

namespace foretoken {
namespace {

// Pushes a text in which '<' stands for the "[" of a list whose items all differ. The offset of the
// byte that was refused, or -1.
int FirstRefused(std::string_view text, UniqueLists* lists) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = text[i] == '<';
    if (!lists->Push(static_cast<std::uint8_t>(begins ? '[' : text[i]), begins)) {
      return i;
    }
  }
  return -1;
}

int FirstRefused(std::string_view text) {
  UniqueLists lists;
  return FirstRefused(text, &lists);
}

TEST(UniqueLists, RefusesTheByteThatCompletesARepetition) {
  EXPECT_EQ(FirstRefused(R"(<"a","b","ab"])"), -1);
  EXPECT_EQ(FirstRefused(R"(<"a","b","a"])"), 11);
  EXPECT_EQ(FirstRefused(R"(<"a\"","a\"b","a"])"), -1);
  EXPECT_EQ(FirstRefused(R"(<"a\\","a\\"])"), 11);
  EXPECT_EQ(FirstRefused("<1,12,1]"), 7);
  EXPECT_EQ(FirstRefused("<1,12,1 ]"), 7);
  EXPECT_EQ(FirstRefused("<true, null, false, true,1]"), 24);
  EXPECT_EQ(FirstRefused("<[1],[1,2],[ 1 ] ]"), 15);
  EXPECT_EQ(FirstRefused(R"(<{"a":1,"b":[]},{"b":[],"a":1}])"), 29);
  EXPECT_EQ(FirstRefused(R"(<{"a":1,"a":2},{"a":1},{"a": 2}])"), 30);
  EXPECT_EQ(FirstRefused(R"(<{"a":",}"},{"a":",{"},{"a":",}" }])"), 33);
  EXPECT_EQ(FirstRefused("<>"), -1);
}

TEST(UniqueLists, ListsOfOneKindAreKeptApart) {
  EXPECT_EQ(FirstRefused("[1,1,<1,2],<1,2],1,1]"), -1);
  EXPECT_EQ(FirstRefused(R"({"a":<1],"b":<1],"c":[1,1]})"), -1);
  EXPECT_EQ(FirstRefused("<[1,1],<1,2],<2,1],[1,1]]"), 23);
  EXPECT_EQ(FirstRefused("<<1,2],<2,1],<1,2]]"), 17);
  EXPECT_EQ(FirstRefused(R"(<"[1","[1]","1"])"), -1);
}

TEST(UniqueLists, ReturnsToAMark) {
  constexpr std::string_view kText = R"(<{"a":<1,2]},[<"x"],"y, ]"],{"a":[1,1]},12])";
  for (std::size_t from = 0; from <= kText.size(); ++from) {
    UniqueLists lists;
    ASSERT_EQ(FirstRefused(kText.substr(0, from), &lists), -1);
    const bool in_string = lists.in_string();
    const auto mark = lists.mark();
    for (std::size_t more = 0; from + more <= kText.size(); ++more) {
      (void)FirstRefused(kText.substr(from, more), &lists);
      lists.Return(mark);
      ASSERT_EQ(lists.in_string(), in_string);
    }
    lists.Settle();
    EXPECT_EQ(FirstRefused(kText.substr(from), &lists), -1) << from;
    EXPECT_FALSE(lists.open());
  }
}

TEST(UniqueLists, TellsHowItemsThatBeginAlikeGoOn) {
  UniqueLists lists;
  EXPECT_FALSE(lists.MayRepeat());
  ASSERT_EQ(FirstRefused(R"(<"ab","ac",<"x"],)", &lists), -1);
  EXPECT_THAT(lists.Continuations(), testing::ElementsAre("\"ab\"", "\"ac\"", "[\"x\"]"));
  ASSERT_EQ(FirstRefused("\"a", &lists), -1);
  EXPECT_THAT(lists.Continuations(), testing::ElementsAre("b\"", "c\""));
  ASSERT_EQ(FirstRefused("d", &lists), -1);
  EXPECT_FALSE(lists.MayRepeat());
}

// A vocabulary of all bytes and of many pieces of `texts`.
std::vector<std::string> Pieces(const std::set<std::string>& texts, std::mt19937* random) {
  std::set<std::string> pieces;
  for (int i = 0; i < 400; ++i) {
    auto text = texts.begin();
    std::advance(text, (*random)() % texts.size());
    if (text->empty()) continue;
    const std::size_t begin = (*random)() % text->size();
    pieces.insert(text->substr(begin, 1 + (*random)() % 7));
  }
  std::vector<std::string> tokens = {""};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(std::string(1, static_cast<char>(byte)));
  for (const std::string& piece : pieces) {
    if (piece.size() > 1) tokens.push_back(piece);
  }
  return tokens;
}

std::shared_ptr<ConstraintVocabulary> VocabularyOf(const std::vector<std::string>& tokens) {
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<ConstraintVocabulary>(
      ConstraintVocabulary{.trie = TokenTrie(views), .end_tokens = {0}});
}

struct Texts {
  std::string grammar;
  std::set<std::string> all;  // All that it lets through.
};

// Lists of up to three of `items` (which differ as values), those of a list all different.
Texts ListsOf(const std::vector<std::string>& items, int min, bool spaces) {
  Texts texts;
  std::string choice;
  for (const std::string& item : items) {
    choice += (choice.empty() ? "" : " | ") + GrammarLiteral(item);
  }
  const std::string comma = spaces ? R"("," " "?)" : R"(",")";
  texts.grammar =
      fmt::format("root ::= \"x\" @unique \"[\" (item ({} item){{{},2}}){} \"]\"\nitem ::= {}\n",
                  comma, std::max(0, min - 1), min == 0 ? "?" : "", choice);
  const auto add = [&](const auto& self, const std::string& text, std::vector<std::size_t> used) {
    if (std::ssize(used) >= min) texts.all.insert(text + "]");
    if (used.size() == 3) return;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (std::ranges::find(used, i) != used.end()) continue;
      std::vector<std::size_t> more = used;
      more.push_back(i);
      self(self, text + (used.empty() ? "" : ",") + items[i], more);
      if (spaces && !used.empty()) self(self, text + ", " + items[i], more);
    }
  };
  add(add, "x[", {});
  return texts;
}

// Along random ways through the grammar: a token is let through just where some text begins so.
void CheckMasksOfTexts(const Texts& texts, unsigned seed) {
  std::mt19937 random(seed);
  const std::vector<std::string> tokens = Pieces(texts.all, &random);
  const auto constraint = GrammarConstraint::Create(texts.grammar, VocabularyOf(tokens));
  ASSERT_TRUE(constraint.ok()) << constraint.error().message;
  const auto may_begin = [&](const std::string& text) {
    const auto found = texts.all.lower_bound(text);
    return found != texts.all.end() && found->starts_with(text);
  };
  for (int walk = 0; walk < 60; ++walk) {
    GrammarCursor cursor(*constraint, /*drops_space=*/false);
    std::string text;
    std::vector<Token> path;  // Not pushed yet, as drafts are not.
    while (true) {
      const auto mask = cursor.Mask(path);
      std::vector<Token> allowed;
      for (std::size_t token = 1; token < tokens.size(); ++token) {
        const bool lets = (mask[token / 64] >> (token % 64) & 1) != 0;
        ASSERT_EQ(lets, may_begin(text + tokens[token]))
            << texts.grammar << text << " and then " << tokens[token];
        if (lets) allowed.push_back(static_cast<Token>(token));
      }
      ASSERT_EQ((mask[0] & 1) != 0, texts.all.contains(text)) << text;
      if (allowed.empty()) break;
      path.push_back(allowed[random() % allowed.size()]);
      text += tokens[path.back()];
      if (random() % 3 == 0) {
        for (const Token token : path) cursor.Push(token);
        path.clear();
      }
    }
  }
}

TEST(UniqueMasks, LetThroughWhatCanStillBeUnique) {
  CheckMasksOfTexts(ListsOf({"1", "12", "123", "2", "-1"}, 0, false), 1);
  CheckMasksOfTexts(ListsOf({"\"\"", "\"a\"", "\"ab\"", "\"abc\"", "\"b\""}, 1, true), 2);
  CheckMasksOfTexts(ListsOf({"true", "false", "null", "[true]", "[true,[]]", "\"[\""}, 0, true), 3);
  CheckMasksOfTexts(
      ListsOf({"{\"a\":1,\"b\":2}", "{\"a\":1}", "{}", "\"\\\"\"", "\"\\\\\"", "0"}, 2, false), 4);
  CheckMasksOfTexts(ListsOf({"\"é\"", "\"è\"", "\"a b\"", "\"a  b\"", "\"ab\"", "\",\""}, 3, true),
                    5);
}

// Where there are no more values than items, the last ones are forced.
TEST(UniqueMasks, LeaveNoWayToWhereNoValueIsLeft) {
  CheckMasksOfTexts(ListsOf({"\"aa\"", "\"ab\"", "\"b\""}, 3, false), 6);
  CheckMasksOfTexts(ListsOf({"10", "1", "100"}, 0, false), 7);
}

TEST(UniqueMasks, TokensOfWholeListsAreLookedAt) {
  const auto tokens = std::vector<std::string>{"", "[1,1", "[1,2", "[", "1", "2", ",", "]", ",1]"};
  const auto constraint = GrammarConstraint::Create(R"(root ::= @unique "[" [12] ("," [12])* "]")",
                                                    VocabularyOf(tokens));
  ASSERT_TRUE(constraint.ok()) << constraint.error().message;
  GrammarCursor cursor(*constraint, /*drops_space=*/false);
  EXPECT_EQ(cursor.Mask({})[0], 0b001100U);
  const std::vector<Token> list = {3, 4};
  EXPECT_EQ(cursor.Mask(list)[0], 0b011000000U);  // Not ",1]".
  const std::vector<Token> full = {2};
  EXPECT_EQ(cursor.Mask(full)[0], 0b010000000U);  // There is no third value.
  cursor.Push(1);
  EXPECT_EQ(cursor.Mask({})[0], 0U);
  EXPECT_TRUE(cursor.Refused({}));
  cursor.Push(7);
  EXPECT_FALSE(cursor.MayContinue());
}

}  // namespace
}  // namespace foretoken
