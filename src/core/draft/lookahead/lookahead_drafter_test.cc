#include <gtest/gtest.h>

#include "base/numbers/integers.h"
#include "core/draft/observing_testing.h"

namespace foretoken {
namespace {

ScriptedDecoding Decoding(int window, int guesses, int levels,
                          ScriptedDecoding::Target target = ScriptedDecoding::Sure(Successor)) {
  ScriptedDecoding decoding(DrafterId::kLookahead, std::move(target));
  decoding.window = window;
  decoding.guesses = guesses;
  decoding.max_nodes = (window + guesses) * levels;
  decoding.lookahead = decoding.max_nodes;
  return decoding;
}

// Jacobi alone never gets ahead here (jacobi_drafter_test.cc): no wrong guess leads to a right one.
// But what the target says behind any guess is the n-gram that follows it elsewhere.
TEST(Lookahead, NgramsThatTheWindowMadeComeTrueElsewhere) {
  auto decoding = Decoding(5, 3, 4);
  const auto decoded = decoding.Decode({2, 0, 5, 1}, 200);
  for (std::size_t i = 4; i < decoded.tokens.size(); ++i) {
    EXPECT_EQ(decoded.tokens[i], (decoded.tokens[i - 1] + 1) % 8);
  }
  EXPECT_LT(decoded.rounds, 80);
  // What was learned stays: the next text goes at K + 1 tokens a pass from the beginning.
  EXPECT_LT(decoding.Decode({3}, 200).rounds, 50);
}

TEST(Lookahead, TheWindowIsAChainWithAChainAtEachToken) {
  auto decoding = Decoding(3, 2, 4);
  ScriptedDecoding::Sequence sequence{.tokens = {0, 1, 2, 3, 4, 5, 6, 7}};
  decoding.Round(&sequence);
  const Proposal& proposal = sequence.proposal;
  EXPECT_GT(proposal.size(), 3);
  EXPECT_LE(proposal.size(), 12) << "nothing but the window: the pool is empty";
  int deepest = 0;
  for (int node = 1; node <= proposal.size(); ++node) {
    deepest = std::max(deepest, proposal.Depth(node));
  }
  EXPECT_EQ(deepest, 3 + 4 - 1);
}

TEST(Lookahead, KeepsWithinWhatThereIsRoomFor) {
  for (const int nodes : {0, 1, 2, 3, 7, 13, 24, 63}) {
    for (const int depth : {0, 1, 3, 63}) {
      auto decoding = Decoding(4, 3, 5);
      decoding.max_nodes = nodes;
      decoding.lookahead = depth;
      const auto decoded = decoding.Decode({2, 0, 5, 1}, 60);  // Checks the limits in every round.
      EXPECT_EQ(decoded.proposal.size() == 0, nodes == 0 || depth == 0) << nodes << ", " << depth;
    }
  }
}

TEST(Lookahead, TextsOfAnotherScopeDoNotShow) {
  const auto within_half = [](std::span<const Token> text) {
    return text.back() / 4 * 4 + (text.back() + 1) % 4;
  };
  auto decoding = Decoding(5, 3, 4, ScriptedDecoding::Sure(within_half));
  decoding.Decode({4, 6, 5, 7}, 100, 1);
  decoding.Become(ScriptedDecoding::Sure([](auto) { return 4; }));  // Known in scope 1.
  ScriptedDecoding::Sequence same{.id = 50, .tokens = {0, 1, 2, 4}, .scope = 1};
  ScriptedDecoding::Sequence other{.id = 51, .tokens = {0, 1, 2, 4}, .scope = 2};
  decoding.Round(&same);
  decoding.Round(&other);
  EXPECT_TRUE(TokensOf(same.proposal).contains(5));
  EXPECT_FALSE(TokensOf(other.proposal).contains(5));
}

TEST(Lookahead, TheSameTokensAtAnyTemperature) {
  const auto target = [](std::span<const Token> text, std::span<float> row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = i == Size(Successor(text)) ? 2.0F : 0.0F;
    }
  };
  for (const float temperature : {0.0F, 0.7F, 1.3F}) {
    auto decoding = Decoding(5, 3, 4, target);
    decoding.sampling = {.temperature = temperature, .seed = 8};
    auto plain = Decoding(5, 3, 0, target);
    plain.sampling = decoding.sampling;
    const auto truth = plain.Decode({1, 2}, 100);
    EXPECT_EQ(truth.rounds, 100);
    const auto decoded = decoding.Decode({1, 2}, 100);
    EXPECT_EQ(decoded.tokens, truth.tokens);
    EXPECT_LT(decoded.rounds, 90) << temperature;
  }
}

}  // namespace
}  // namespace foretoken
