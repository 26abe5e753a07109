#include <gtest/gtest.h>

#include "core/draft/observing_testing.h"

namespace foretoken {
namespace {

// Whether the path of these tokens is there.
bool Has(const Proposal& proposal, std::initializer_list<Token> path) {
  int node = 0;
  for (const Token token : path) {
    node = proposal.ChildWith(node, token);
    if (node == 0) return false;
  }
  return true;
}

TEST(Racer, ProposesWhatFollowedEarlierThenWhatTheTargetSaid) {
  ScriptedDecoding decoding(DrafterId::kRacer, Descending);
  decoding.lookahead = decoding.max_nodes = 12;
  // 2 5 was followed by 0 7 3 twice, by 4 once.
  ScriptedDecoding::Sequence sequence{.tokens = {2, 5, 0, 7, 3, 2, 5, 4, 2, 5, 0, 7, 3, 2, 5}};
  decoding.Round(&sequence);
  EXPECT_TRUE(Has(sequence.proposal, {0, 7, 3, 2, 5}));
  EXPECT_TRUE(Has(sequence.proposal, {4, 2, 5, 0}));
  EXPECT_EQ(sequence.proposal.tokens[0], 0) << "the most frequent one first";
  EXPECT_EQ(sequence.proposal.source, ProposalSource::Of(DrafterId::kRacer));

  // Where nothing repeats, what was said behind the last token: 7 was in the proposal.
  ScriptedDecoding::Sequence other{.id = 2, .tokens = {6, 7}};
  decoding.Round(&other);
  EXPECT_TRUE(Has(other.proposal, {0}));
  EXPECT_TRUE(Has(other.proposal, {1}));

  // Both in one tree, where they agree in one node.
  ScriptedDecoding::Sequence both{.id = 3, .tokens = {7, 3, 1, 7, 3}};
  decoding.Round(&both);
  EXPECT_TRUE(Has(both.proposal, {1, 7, 3})) << "seen";
  EXPECT_TRUE(Has(both.proposal, {4})) << "said";
  EXPECT_EQ(both.proposal.size(), 12);
}

TEST(Racer, KeepsWithinWhatThereIsRoomForAndGoesAhead) {
  for (const int nodes : {0, 1, 5, 63}) {
    for (const int depth : {1, 3, 63}) {
      ScriptedDecoding decoding(DrafterId::kRacer, Descending);
      decoding.max_nodes = nodes;
      decoding.lookahead = depth;
      const auto decoded = decoding.Decode({0, 1}, 80);  // Checks the limits in every round.
      EXPECT_EQ(decoded.rounds<60, nodes> 0) << nodes << ", " << depth;
      for (std::size_t i = 2; i < decoded.tokens.size(); ++i) {
        EXPECT_EQ(decoded.tokens[i], (decoded.tokens[i - 1] + 1) % 8);
      }
    }
  }
}

}  // namespace
}  // namespace foretoken
