// Grammars against a matcher that could not be simpler, and masks against trying every token.

#include "text/grammar/automaton/state_graph.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "base/numbers/integers.h"
#include "base/text/utf8.h"
#include "text/grammar/automaton/code_points.h"
#include "text/grammar/tokens/grammar_constraint.h"

namespace foretoken {
namespace {

// The ends of all matches of an expression from `begin` on, by trying everything.
class PlainMatcher {
 public:
  PlainMatcher(const Grammar& grammar, std::string_view text) : grammar_(grammar), text_(text) {}

  bool Matches() { return Ends(grammar_.rules[grammar_.root].body, 0).contains(text_.size()); }

 private:
  using Ends_ = std::set<std::size_t>;

  Ends_ Ends(const Expression& expression, std::size_t begin) {
    const auto key = std::pair(&expression, begin);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    Ends_ ends;
    switch (expression.kind) {
      case Expression::Kind::kLiteral:
        if (text_.substr(begin).starts_with(expression.literal)) {
          ends.insert(begin + expression.literal.size());
        }
        break;
      case Expression::Kind::kBeginUnique:
        if (text_.substr(begin).starts_with('[')) ends.insert(begin + 1);
        break;
      case Expression::Kind::kClass: {
        std::string_view rest = text_.substr(begin);
        std::uint32_t code = 0;
        if (!TakeUtf8(&rest, &code)) break;
        for (const CodeRange& range : expression.ranges) {
          if (range.first <= code && code <= range.last) ends.insert(text_.size() - rest.size());
        }
        break;
      }
      case Expression::Kind::kRule:
        ends = Ends(grammar_.rules[expression.rule].body, begin);
        break;
      case Expression::Kind::kSequence:
        ends = {begin};
        for (const Expression& part : expression.parts) ends = After(ends, part);
        break;
      case Expression::Kind::kChoice:
        for (const Expression& part : expression.parts) ends.merge(Ends(part, begin));
        break;
      case Expression::Kind::kRepeat: {
        Ends_ now = {begin};
        if (expression.min == 0) ends = now;
        std::set<Ends_> before;
        for (int i = 1; expression.max < 0 || i <= expression.max; ++i) {
          now = After(now, expression.parts[0]);
          if (i >= expression.min) ends.insert(now.begin(), now.end());
          if (i >= expression.min && !before.insert(now).second) break;
        }
        break;
      }
    }
    return known_[key] = ends;
  }
  Ends_ After(const Ends_& begins, const Expression& part) {
    Ends_ ends;
    for (const std::size_t begin : begins) ends.merge(Ends(part, begin));
    return ends;
  }

  const Grammar& grammar_;
  std::string_view text_;
  std::map<std::pair<const Expression*, std::size_t>, Ends_> known_;
};

class RandomGrammar {
 public:
  explicit RandomGrammar(unsigned seed) : random_(seed) {}

  int Below(int n) { return random_() % n; }

  std::string Make() {
    std::string text;
    for (const char* name : {"root", "p", "q", "r"}) {
      text += fmt::format("{} ::= {}\n", name, Choice(3));
    }
    return text;
  }

 private:
  std::string Choice(int depth) {
    std::string text = Sequence(depth);
    for (int i = Below(3); i > 0; --i) text += " | " + Sequence(depth);
    return text;
  }
  std::string Sequence(int depth) {
    std::string text;
    for (int i = Below(4); i > 0; --i) text += Item(depth) + " ";
    return text;
  }
  std::string Item(int depth) {
    const char* leaves[] = {"\"a\"", "\"b\"", "\"ab\"", "[ab]", "[^a]", "\"é\"", "[é-ø]", "\"ba\""};
    const char* rules[] = {"p", "q", "r", "root"};
    const char* counts[] = {"*", "+", "?", "{2}", "{1,3}", "{0,2}", "{,1}", "{2,}"};
    std::string text = leaves[Below(8)];
    if (Below(3) == 0) {
      text = rules[Below(4)];
    } else if (depth > 0 && Below(4) == 0) {
      text = fmt::format("({})", Choice(depth - 1));
    }
    if (Below(3) == 0) text += counts[Below(8)];
    return text;
  }

  std::mt19937 random_;
};

TEST(StateGraph, AcceptsWhatThePlainMatcherDoes) {
  const std::string alphabet[] = {"a", "b", "é", "ø", "c"};
  int compiled = 0;
  int accepted = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    RandomGrammar random(seed);
    const auto grammar = ParseGrammar(random.Make());
    ASSERT_TRUE(grammar.ok()) << grammar.error().message;
    const auto automaton = Automaton::Compile(*grammar, 4);
    if (!automaton.ok()) continue;
    ++compiled;
    StateGraph graph(&*automaton);
    for (int i = 0; i < 30; ++i) {
      std::string text;
      for (int size = random.Below(8); size > 0; --size) text += alphabet[random.Below(5)];
      const auto state = graph.Next(graph.start(), text);
      const bool matches = PlainMatcher(*grammar, text).Matches();
      ASSERT_EQ(graph.MayEnd(state), matches) << text << " in\n" << RandomGrammar(seed).Make();
      accepted += matches ? 1 : 0;
    }
  }
  EXPECT_GT(compiled, 500);
  EXPECT_GT(accepted, 1000);
}

TEST(StateGraph, ListsNeedNoStack) {
  const auto grammar = ParseGrammar("root ::= \"a\" root | \"a\"");
  const auto automaton = Automaton::Compile(*grammar, 4);
  StateGraph graph(&*automaton);
  EXPECT_EQ(graph.Next(graph.start(), "aaa"), graph.Next(graph.start(), "aaaaaaa"));
}

TEST(StateGraph, AmbiguityIsCarriedOnlySoFar) {
  const auto grammar = ParseGrammar("root ::= \"a\" root? root?");
  const auto automaton = Automaton::Compile(*grammar, 4);
  StateGraph graph(&*automaton);
  EXPECT_TRUE(graph.MayEnd(graph.Next(graph.start(), std::string(100, 'a'))));
  EXPECT_FALSE(graph.MayContinue(graph.Next(graph.start(), std::string(5000, 'a'))));
}

TEST(StateGraph, AStateIsTheSameInAnotherGraph) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    RandomGrammar random(seed);
    const auto grammar = ParseGrammar(random.Make());
    const auto automaton = Automaton::Compile(*grammar, 4);
    if (!automaton.ok()) continue;
    StateGraph graph(&*automaton);
    StateGraph other(&*automaton);
    other.Next(other.start(), "baab");  // Numbers its contexts otherwise.
    auto state = graph.start();
    for (int i = 0; i < 12; ++i) {
      const std::string text = random.Below(2) == 0 ? "a" : "b";
      if (graph.Next(state, text) == StateGraph::kDead) continue;
      state = graph.Next(state, text);
      const auto imported = other.Import(graph, state);
      ASSERT_EQ(other.MayEnd(imported), graph.MayEnd(state));
      ASSERT_EQ(other.Import(graph, state), imported);
      for (const char* next : {"a", "b", "ab", "ba", "aab"}) {
        const auto here = graph.Next(state, next);
        ASSERT_EQ(other.Next(imported, next), other.Import(graph, here)) << seed << next;
      }
    }
  }
}

TEST(StateGraph, OfCopiesThatMayBeSkippedTheFirstIsEnough) {
  // How many copies the text took may be told in ever more ways.
  const auto grammar = ParseGrammar("root ::= (\"ab\" | \"a\" [bc]?){0,200} \"c\"");
  const auto automaton = Automaton::Compile(*grammar, 4);
  StateGraph graph(&*automaton);
  auto state = graph.start();
  for (int i = 0; i < 100; ++i) state = graph.Next(state, "ab");
  EXPECT_LE(graph.threads(state).size(), 8);
  for (int i = 0; i < 100; ++i) state = graph.Next(state, "ab");
  EXPECT_EQ(graph.Next(state, "a"), StateGraph::kDead);
  EXPECT_TRUE(graph.MayEnd(graph.Next(state, "c")));
}

std::shared_ptr<ConstraintVocabulary> SmallVocabulary(RandomGrammar* random) {
  std::vector<std::string> tokens = {"", " ", " a", "  a", "\xC3", "\xA9", "\xB8", "a", "b", "c"};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(std::string(1, static_cast<char>(byte)));
  const std::string alphabet[] = {"a", "b", "é", "ø", "\xC3"};
  for (int i = 0; i < 200; ++i) {
    std::string token;
    for (int size = 1 + random->Below(6); size > 0; --size) token += alphabet[random->Below(5)];
    tokens.push_back(token);
  }
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<ConstraintVocabulary>(
      ConstraintVocabulary{.trie = TokenTrie(views), .end_tokens = {0}});
}

// At random states: a token is allowed exactly if the bytes lead on, and every mask has a token.
void CheckMasksOfGrammar(const std::string& text, RandomGrammar* random, bool drops_space) {
  const auto vocabulary = SmallVocabulary(random);
  auto constraint = GrammarConstraint::Create(text, vocabulary);
  if (!constraint.ok()) return;
  const auto grammar = ParseGrammar(text);
  const auto automaton = Automaton::Compile(*grammar, vocabulary->trie.depth());
  StateGraph graph(&*automaton);
  GrammarCursor cursor(*constraint, drops_space);
  auto state = graph.start();
  bool dropped = !drops_space;
  const auto after = [&](Token token) {
    std::string_view bytes = vocabulary->trie.BytesOf(token);
    if (!dropped && bytes.starts_with(' ')) bytes.remove_prefix(1);
    return graph.Next(state, bytes);
  };
  for (int step = 0; step < 12; ++step) {
    const auto mask = cursor.Mask({});
    std::vector<Token> allowed;
    for (Token token = 0; token < vocabulary->trie.vocabulary(); ++token) {
      const bool bit = (mask[token / 64] >> token % 64 & 1) != 0;
      const bool right = token == 0 ? graph.MayEnd(state) : after(token) != StateGraph::kDead;
      ASSERT_EQ(bit, right) << "token " << vocabulary->trie.BytesOf(token) << " at step " << step
                            << " in\n"
                            << text;
      if (bit) allowed.push_back(token);
    }
    ASSERT_FALSE(allowed.empty()) << text;
    EXPECT_EQ(cursor.MayEnd(), graph.MayEnd(state));
    EXPECT_EQ(cursor.MayContinue(), allowed.size() > 1 || allowed[0] != 0);
    const Token token = allowed[random->Below(Int(allowed.size()))];
    if (token == 0) return;
    state = after(token);
    dropped = true;
    cursor.Push(token);
  }
}

TEST(GrammarConstraint, MasksAreWhatTryingEveryTokenFinds) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomGrammar random(seed);
    CheckMasksOfGrammar(random.Make(), &random, seed % 3 == 0);
  }
}

TEST(GrammarConstraint, MasksOfLongRepetitionsAreExactToo) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    RandomGrammar random(seed);
    CheckMasksOfGrammar("root ::= ([ab] \"é\"?){20,60} \"c\"", &random, false);
    CheckMasksOfGrammar("root ::= ([ab]{17} \"ø\"){30} | (x \"b\"){,40} \"c\"\nx ::= \"a\"+",
                        &random, true);
    CheckMasksOfGrammar("root ::= (([ab]{1,30} \"é\"){1,30} | \"a\"{25,}){2} \"c\"", &random,
                        false);
  }
}

TEST(GrammarConstraint, AForkedCursorGoesItsOwnWay) {
  RandomGrammar random(1);
  const auto vocabulary = SmallVocabulary(&random);
  const auto constraint = GrammarConstraint::Create("root ::= \"a\" \"b\" | \"ba\"", vocabulary);
  ASSERT_TRUE(constraint.ok());
  const GrammarCursor start(*constraint, false);
  GrammarCursor fork = start;
  fork.Push(7);
  const std::vector<Token> path = {7};
  const auto after_path = start.Mask(path);
  const std::vector<std::uint64_t> copy(after_path.begin(), after_path.end());
  EXPECT_TRUE(std::ranges::equal(fork.Mask({}), copy));
  EXPECT_FALSE(std::ranges::equal(start.Mask({}), copy));
  fork.Push(8);
  EXPECT_TRUE(fork.MayEnd() && !fork.MayContinue());
  fork.Push(8);  // Not allowed: nothing may follow.
  EXPECT_FALSE(fork.MayEnd());
  for (const std::uint64_t word : fork.Mask({})) EXPECT_EQ(word, 0);
}

// A vocabulary that lacks bytes: some of those of the random grammars' characters, one that only
// long characters have.
std::shared_ptr<ConstraintVocabulary> VocabularyWithout(std::string_view lacking) {
  std::vector<std::string> tokens = {"", "é", "aé", "ab", "b\xC3", "ba", "\xA9z", "aø"};
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    if (lacking.find(c) == lacking.npos) tokens.push_back(std::string(1, c));
  }
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<ConstraintVocabulary>(
      ConstraintVocabulary{.trie = TokenTrie(views), .end_tokens = {0}});
}

// Follows a random way through the masks; says whether it came to an end of the text.
bool EndsAtRandom(const std::shared_ptr<GrammarConstraint>& constraint, RandomGrammar* random) {
  GrammarCursor cursor(constraint, false);
  for (int step = 0; step < 60; ++step) {
    const auto mask = cursor.Mask({});
    std::vector<Token> allowed;
    for (Token token = 0; token < constraint->vocabulary(); ++token) {
      if ((mask[token / 64] >> token % 64 & 1) != 0) allowed.push_back(token);
    }
    EXPECT_FALSE(allowed.empty()) << constraint->grammar();
    if (allowed.empty()) return false;
    if (allowed.front() == 0) return true;
    cursor.Push(allowed[random->Below(Int(allowed.size()))]);
  }
  return false;
}

bool CanWrite(const TokenTrie& trie, std::string_view text) {
  return std::ranges::all_of(text,
                             [&](char c) { return trie.bytes()[static_cast<std::uint8_t>(c)]; });
}

// Without some bytes just those texts are left that need none of them, and no mask leads to where
// nothing fits.
TEST(GrammarConstraint, WhatAVocabularyCannotWriteIsLeftOut) {
  const std::string alphabet[] = {"a", "b", "é", "ø", "c"};
  int accepted = 0;
  int refused = 0;
  int ended = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    RandomGrammar random(seed);
    const std::string text = random.Make();
    const auto grammar = ParseGrammar(text);
    const auto whole = Automaton::Compile(*grammar, 4);
    if (!whole.ok()) continue;
    const std::string_view lacking[] = {"b\xF1", "\xB8", "\xA9", "\xC3", "a", "ab"};
    const auto vocabulary = VocabularyWithout(lacking[seed % 6]);
    const auto constraint = GrammarConstraint::Create(text, vocabulary);
    const auto left = Automaton::Compile(*grammar, 4, vocabulary->trie.bytes());
    ASSERT_EQ(constraint.ok(), left.ok()) << constraint.error().message;
    StateGraph graph(&*whole);
    std::optional<StateGraph> own;
    if (left.ok()) own.emplace(&*left);
    refused += left.ok() ? 0 : 1;
    for (int i = 0; i < 30; ++i) {
      std::string sample;
      for (int size = random.Below(8); size > 0; --size) sample += alphabet[random.Below(5)];
      const bool matches =
          graph.MayEnd(graph.Next(graph.start(), sample)) && CanWrite(vocabulary->trie, sample);
      const bool let = own.has_value() && own->MayEnd(own->Next(own->start(), sample));
      ASSERT_EQ(let, matches) << sample << " without " << lacking[seed % 6] << " in\n" << text;
      accepted += let ? 1 : 0;
    }
    for (int i = 0; constraint.ok() && i < 5; ++i) ended += EndsAtRandom(*constraint, &random);
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(refused, 20);
  EXPECT_GT(ended, 500);
}

// SmolLM2's byte-level vocabulary has no token for these bytes, of which the last stand in no text.
TEST(GrammarConstraint, ClassesAreWithoutTheCharactersOfSuchBytes) {
  const auto vocabulary = VocabularyWithout("\x04\x06\x13\xC0\xC1\xF1\xF2\xF5\xF6\xF7\xF8\xFF");
  const auto automaton =
      Automaton::Compile(*ParseGrammar("root ::= \"<\" . \">\""), 4, vocabulary->trie.bytes());
  ASSERT_TRUE(automaton.ok());
  StateGraph graph(&*automaton);
  for (std::uint32_t code = 0; code <= kLastCodePoint; code += code < 0x3000 ? 1 : 97) {
    if (!IsScalarValue(code)) continue;
    std::string bytes = "<";
    AppendUtf8(code, &bytes);
    ASSERT_EQ(graph.Next(graph.start(), bytes) != StateGraph::kDead,
              CanWrite(vocabulary->trie, bytes))
        << code;
  }
}

TEST(GrammarConstraint, IsRefusedOnlyWhereNothingCanBeWritten) {
  const std::vector<std::string_view> tokens = {"", "a", "b", "é"};
  const auto vocabulary = std::make_shared<ConstraintVocabulary>(
      ConstraintVocabulary{.trie = TokenTrie(tokens), .end_tokens = {0}});
  for (const char* grammar : {"root ::= [ab]*", "root ::= [abc]*", "root ::= .", "root ::= \"é\"?",
                              "root ::= \"c\" | \"ab\"", "root ::= x\nx ::= \"c\" x | \"b\""}) {
    EXPECT_TRUE(GrammarConstraint::Create(grammar, vocabulary).ok()) << grammar;
  }
  for (const char* grammar :
       {"root ::= \"abc\"", "root ::= [c-z]", "root ::= \"a\" [c]+",
        "root ::= \"a\" x\nx ::= \"c\" x | \"bc\"", "root ::= \"c\" | \"ac\""}) {
    const auto constraint = GrammarConstraint::Create(grammar, vocabulary);
    ASSERT_FALSE(constraint.ok()) << grammar;
    EXPECT_NE(constraint.error().message.find("the byte 0x63 alone"), std::string::npos) << grammar;
  }
  // The é is a token, but what begins with its first byte might not be ended.
  EXPECT_FALSE(GrammarConstraint::Create("root ::= \"é\"", vocabulary).ok());
}

}  // namespace
}  // namespace foretoken
