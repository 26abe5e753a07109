#include <gtest/gtest.h>

#include "core/draft/observing_testing.h"

namespace foretoken {
namespace {

// The next token hangs on its place alone, as in a table that is filled in.
Token ByPlace(std::span<const Token> text) { return static_cast<Token>(text.size() * 3 % 7); }

// It hangs on the token before it, and no wrong guess leads to the right one.

TEST(Jacobi, GuessesThatHangOnNoOtherAreRightAfterOnePass) {
  ScriptedDecoding decoding(DrafterId::kJacobi, ScriptedDecoding::Sure(ByPlace));
  ScriptedDecoding::Sequence sequence{.tokens = {7, 7, 7}};
  decoding.Prefill(&sequence);
  decoding.Round(&sequence);
  // All are right now: K and the bonus token in every pass but for the K new places of each.
  EXPECT_EQ(decoding.Round(&sequence), 5U);
  const auto decoded = decoding.Decode({7, 7, 7}, 120);
  EXPECT_LT(decoded.rounds, 60);
  for (std::size_t i = 3; i < decoded.tokens.size(); ++i) {
    EXPECT_EQ(decoded.tokens[i], ByPlace(std::span(decoded.tokens).first(i)));
  }
}

TEST(Jacobi, NextGuessesAreWhatTheTargetSaidBehindTheGuesses) {
  ScriptedDecoding decoding(DrafterId::kJacobi, ScriptedDecoding::Sure(Successor));
  decoding.lookahead = decoding.max_nodes = 6;
  ScriptedDecoding::Sequence sequence{.tokens = {0, 0, 0, 0}};
  decoding.Round(&sequence);
  const Proposal first = sequence.proposal;
  EXPECT_EQ(first.size(), 6);
  EXPECT_TRUE(first.IsChain());
  EXPECT_EQ(TokensOf(first), std::set<Token>{0}) << "of the text";
  decoding.Round(&sequence);
  // Every guess was 0 and none came true: behind each but the root the target said 1.
  EXPECT_EQ(sequence.tokens, (std::vector<Token>{0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(TokensOf(sequence.proposal), std::set<Token>{1});
  EXPECT_EQ(sequence.proposal.size(), 6);
}

TEST(Jacobi, TheSameTokensAtAnyTemperatureAndBeginsAnewWhereItMissedARound) {
  const auto target = [](std::span<const Token> text, std::span<float> row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<float>((text.size() * 3 + i * 7) % 11) * 0.3F;
    }
    row[text.back()] += 0.5F;
  };
  for (const float temperature : {0.0F, 0.7F, 1.3F}) {
    ScriptedDecoding plain(DrafterId::kJacobi, target);
    plain.sampling = {.temperature = temperature, .seed = 4};
    plain.lookahead = plain.max_nodes = 0;
    const auto truth = plain.Decode({1, 2}, 64);
    EXPECT_EQ(truth.rounds, 64);
    ScriptedDecoding decoding(DrafterId::kJacobi, target);
    decoding.sampling = plain.sampling;
    const auto decoded = decoding.Decode({1, 2}, 64);
    EXPECT_EQ(decoded.tokens, truth.tokens);
    EXPECT_LT(decoded.rounds, 64) << temperature;
  }
  ScriptedDecoding decoding(DrafterId::kJacobi, ScriptedDecoding::Sure(ByPlace));
  ScriptedDecoding::Sequence sequence{.tokens = {7, 7}};
  decoding.Round(&sequence);
  sequence.tokens = {7, 7, 7, 7, 7, 7, 7};  // Not what it saw.
  decoding.Round(&sequence);
  EXPECT_EQ(TokensOf(sequence.proposal), std::set<Token>{7});
}

}  // namespace
}  // namespace foretoken
