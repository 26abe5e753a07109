// Subtrees of tokens that are let through at once: grammars of free texts, whose masks must be what
// trying every token finds and take the same steps whatever was asked before.

#include "text/grammar/automaton/uniform_steps.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/numbers/integers.h"
#include "text/grammar/tokens/token_mask.h"

namespace foretoken {
namespace {

constexpr std::int64_t kUnlimitedSteps = std::numeric_limits<std::int64_t>::max() / 2;

class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}

  int Below(int n) { return random_() % n; }
  template <std::size_t Size>
  std::string Of(const char* const (&texts)[Size]) {
    return texts[Below(Size)];
  }

 private:
  std::mt19937 random_;
};

// Most bytes at least, many words in which some characters are more frequent than others, and some
// bytes that are no characters.
std::shared_ptr<ConstraintVocabulary> WordVocabulary(Random* random) {
  constexpr const char* kPieces[] = {"a", "b", "e", "g", "h", "z", "E",  "G",
                                     "0", "7", " ", "é", "ø", "€", "嗨", "🦆"};
  constexpr const char* kRare[] = {"\"",   "\\",   "\n",       "_",       "\x7F",
                                   "\xC3", "\xA9", "\xED\xA0", "\xF0\x9F"};
  std::vector<std::string> tokens = {""};
  const bool lacks = random->Below(2) == 0;
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    const bool rare = std::string_view("\x04z\x82\xF1\xF2\xF3").find(c) != std::string_view::npos;
    if (!lacks || !rare || random->Below(3) == 0) tokens.push_back(std::string(1, c));
  }
  for (int i = 0; i < 1500; ++i) {
    std::string token;
    const int pieces = 3 + random->Below(14);
    for (int size = 1 + random->Below(6); size > 0; --size) {
      const bool rare = random->Below(25) == 0;
      token += rare ? random->Of(kRare) : kPieces[random->Below(std::min(pieces, 16))];
    }
    tokens.push_back(token);
  }
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<ConstraintVocabulary>(
      ConstraintVocabulary{.trie = TokenTrie(views), .end_tokens = {0}});
}

// A class, repeated in one way or another, between and within other things.
std::string FreeText(Random* random) {
  constexpr const char* kClasses[] = {"[^\"\\\\\\x00-\\x1F]",
                                      "[a-z]",
                                      "[a-zA-Z0-9 ]",
                                      "[^a]",
                                      "[^é]",
                                      "[a-fh-z]",
                                      "[ -~]",
                                      ".",
                                      "[\\u0080-\\U0010FFFF]",
                                      "[0-9]",
                                      "[A-Z]",
                                      "[a-z€-\\U0010FFFF]"};
  constexpr const char* kCounts[] = {"*", "+", "{0,9}", "{3,5}", "{2,}", "{12}", "{1,40}"};
  constexpr const char* kForms[] = {
      "root ::= \"\\\"\" x \"\\\"\"",
      "root ::= t t\nt ::= x \"\\n\"",
      "root ::= x | \"abe\" y",
      "root ::= n \"_\"\nn ::= x",
      "root ::= n\nn ::= [^ae] m | [a] o | \"\"\nm ::= [^\\n] m | \"\"\no ::= [^b] m | [b]",
      "root ::= n \"\\n\"\nn ::= [^ae] m | [a] o | \"!\"\nm ::= [^\\n] m | \"!\"\no ::= [^b] m",
      "root ::= (x \"\\n\" | y \"_\")+",
      "root ::= x y | y \"z\" x",
  };
  std::string text = random->Of(kForms);
  for (const std::string name : {"x", "y"}) {
    const std::string repeated = random->Of(kClasses) + random->Of(kCounts);
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      const bool whole = (at == 0 || text[at - 1] == ' ' || text[at - 1] == '(') &&
                         (at + 1 == text.size() || text[at + 1] == ' ' || text[at + 1] == '\n');
      if (whole) text.replace(at, 1, repeated);
    }
  }
  return text;
}

// What masks are made of, apart from a sequence.
struct Maker {
  Maker(const Automaton* compiled, const ConstraintVocabulary* tokens)
      : automaton(compiled), vocabulary(tokens), graph(std::make_shared<StateGraph>(compiled)) {}

  TokenMask MaskOf(StateGraph::State state) {
    TokenMask mask({automaton, vocabulary, &frames}, graph, state);
    mask.Continue(kUnlimitedSteps);
    return mask;
  }

  const Automaton* automaton;
  const ConstraintVocabulary* vocabulary;
  std::shared_ptr<StateGraph> graph;
  FrameMasks frames;
};

TEST(UniformSteps, LetThroughWhatTryingEveryTokenFindsInTheSameSteps) {
  for (unsigned seed = 0; seed < 250; ++seed) {
    Random random(seed);
    const auto vocabulary = WordVocabulary(&random);
    const TokenTrie& trie = vocabulary->trie;
    const std::string grammar = FreeText(&random);
    const auto automaton = Automaton::Compile(*ParseGrammar(grammar), trie.depth(), trie.bytes());
    ASSERT_TRUE(automaton.ok()) << grammar;
    Maker used(&*automaton, vocabulary.get());
    std::string text;
    for (int step = 0; step < 8; ++step) {
      const auto state = used.graph->Next(used.graph->start(), text);
      const TokenMask mask = used.MaskOf(state);
      std::vector<Token> allowed;
      for (Token token = 1; token < trie.vocabulary(); ++token) {
        const bool bit = (mask.bits()[token / 64] >> token % 64 & 1) != 0;
        const bool right = used.graph->Next(state, trie.BytesOf(token)) != StateGraph::kDead;
        ASSERT_EQ(bit, right) << trie.BytesOf(token) << " behind " << text << " in\n" << grammar;
        if (bit) allowed.push_back(token);
      }
      // As if nothing else had been asked.
      Maker fresh(&*automaton, vocabulary.get());
      const auto same = fresh.graph->Next(fresh.graph->start(), text);
      ASSERT_EQ(fresh.MaskOf(same).steps(), mask.steps()) << text << " in\n" << grammar;
      if (allowed.empty()) break;
      text += trie.BytesOf(allowed[random.Below(Int(allowed.size()))]);
    }
  }
}

// The bytes, and all texts of one to four of five letters.
ConstraintVocabulary FiveLetterVocabulary() {
  std::vector<std::string> tokens = {""};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(std::string(1, static_cast<char>(byte)));
  std::vector<std::string> longest = {""};
  for (int size = 1; size <= 4; ++size) {
    std::vector<std::string> longer;
    for (const std::string& text : longest) {
      for (const char letter : {'a', 'e', 'h', 'Q', '3'}) longer.push_back(text + letter);
    }
    tokens.insert(tokens.end(), longer.begin(), longer.end());
    longest = std::move(longer);
  }
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return {.trie = TokenTrie(views), .end_tokens = {0}};
}

TEST(UniformSteps, SpareTheWalkOverMostOfAFreeText) {
  const ConstraintVocabulary vocabulary = FiveLetterVocabulary();
  for (const char* grammar :
       {"root ::= \"<\" [^\"\\\\\\x00-\\x1F]* \">\"",
        "root ::= \"<\" [^\"\\\\\\x00-\\x1F]{0,500} \">\"",
        "root ::= \"<\" ([^Q] n | \"Q\" m)\nn ::= [^<] n | \">\"\nm ::= [^e] n"}) {
    const auto automaton = Automaton::Compile(*ParseGrammar(grammar), vocabulary.trie.depth());
    ASSERT_TRUE(automaton.ok());
    Maker maker(&*automaton, &vocabulary);
    const auto mask = maker.MaskOf(maker.graph->Next(maker.graph->start(), "<"));
    EXPECT_LT(mask.steps(), vocabulary.trie.size() / 2) << grammar;
  }
}

TEST(UniformSteps, SayHowFarTextsGoOn) {
  const auto automaton =
      Automaton::Compile(*ParseGrammar("root ::= \"<\" [a-z]{2,5} \">\" [^e]*"), 8);
  StateGraph graph(&*automaton);
  UniformSteps& steps = graph.uniform_steps();
  const CharacterKinds letters = KindOf('b') | KindOf('x');
  const auto within = graph.Next(graph.start(), "<ab");
  EXPECT_TRUE(steps.LetThrough(within, letters, 3).all);
  EXPECT_FALSE(steps.LetThrough(within, letters, 4).all);
  EXPECT_FALSE(steps.LetThrough(within, letters | KindOf('3'), 1).all);
  EXPECT_FALSE(steps.LetThrough(graph.start(), letters, 1).all);
  const auto rest = graph.Next(graph.start(), "<ab>");
  EXPECT_TRUE(steps.LetThrough(rest, KindOf('3') | KindOf('x') | kWideKind, 1000).loops);
  EXPECT_FALSE(steps.LetThrough(rest, letters, 1).all);  // There is the e.
  EXPECT_FALSE(steps.LetThrough(rest, kBrokenKind, 1).all);
}

TEST(TokenTrie, KnowsTheKindsBelowANode) {
  const std::vector<std::string_view> tokens = {
      "a", "a1", "a1é", "a1\xC3", "a Z\"", "b\xA9", "bé", "1", "\xC3", " ", "Z", "\"", "b", "\xA9"};
  const TokenTrie trie(tokens);
  const auto below = [&](std::string_view text) {
    for (int node = 1; node < trie.size(); ++node) {
      for (const Token token : trie.tokens(node)) {
        if (tokens[token] == text) return trie.below(node);
      }
    }
    return TokenTrie::Below{};
  };
  EXPECT_EQ(below("a").kinds, KindOf('1') | kWideKind | KindOf(' ') | KindOf('Z') | KindOf('"'));
  EXPECT_EQ(below("a").length, 3);
  EXPECT_EQ(below("a1").kinds, kWideKind);
  EXPECT_EQ(below("a1é").kinds, kNoKinds);
  EXPECT_EQ(below("a1\xC3").kinds, kWideKind | kBrokenKind);
  EXPECT_NE(trie.below(0).kinds & kBrokenKind, 0);
}

// Characters that no token writes keep nobody from letting the others through at once.
TEST(UniformSteps, DoNotAskForWhatNoTokenHas) {
  ByteSet writable = AllBytes();
  for (const int byte : {0x04, 0xF1, 0xF2}) writable.reset(byte);
  const auto automaton =
      Automaton::Compile(*ParseGrammar("root ::= \"<\" [^<]* \">\""), 8, writable);
  StateGraph graph(&*automaton);
  const auto within = graph.Next(graph.start(), "<");
  EXPECT_TRUE(
      graph.uniform_steps().LetThrough(within, kWideKind | KindOf('\n') | KindOf('b'), 9).loops);
  EXPECT_FALSE(graph.uniform_steps().LetThrough(within, KindOf('<'), 1).all);
}

}  // namespace
}  // namespace foretoken
