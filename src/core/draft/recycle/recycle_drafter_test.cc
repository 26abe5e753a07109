#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/draft/observing_testing.h"
#include "core/draft/recycle/rank_tree.h"
#include "core/draft/recycle/top_tokens.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;

TEST(TopTokens, AreTheHighestWithAndWithoutMaxima) {
  constexpr int kManyTokens = 1000;
  std::mt19937 random(3);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<float> row(kManyTokens);
    for (float& value : row) value = static_cast<float>(random() % 400);  // Many ties.
    row[7] = std::nanf("");
    if (trial == 49) std::fill(row.begin() + 5, row.end(), -HUGE_VALF);
    std::vector<float> maxima(Logits::Groups(kManyTokens), -HUGE_VALF);
    for (int i = 0; i < kManyTokens; ++i) {
      maxima[i / kLogitGroup] = std::fmax(maxima[i / kLogitGroup], row[i]);
    }
    std::vector<Token> expected;
    for (int i = 0; i < kManyTokens; ++i) {
      if (row[i] > -HUGE_VALF) expected.push_back(i);
    }
    std::ranges::stable_sort(expected, std::greater(), [&](Token i) { return row[i]; });
    expected.resize(std::min<std::size_t>(expected.size(), 8));
    for (const float* known : {static_cast<const float*>(nullptr), std::as_const(maxima).data()}) {
      std::vector<Token> best(8, -1);
      best.resize(TopTokens({row.data(), known}, kManyTokens, best));
      EXPECT_EQ(best, expected);
    }
  }
}

// Below each node the children have ascending ranks from 0 on, without gaps.
void ExpectWhole(const RankTree& tree) {
  std::vector<int> children(tree.size() + 1, 0);
  for (std::size_t i = 0; i < tree.size(); ++i) {
    EXPECT_LE(tree[i].parent, static_cast<int>(i));
    EXPECT_EQ(tree[i].rank, children[tree[i].parent]++);
  }
  EXPECT_LE(*std::ranges::max_element(children), SuccessorMatrix::kRanks);
}

TEST(RankTree, TheBestOfASizeBeginTheLargerOnes) {
  const RankTree large = RankProductTree(63);
  ExpectWhole(large);
  ASSERT_EQ(large.size(), 63U);
  const RankTree small = RankProductTree(10);
  for (std::size_t i = 0; i < small.size(); ++i) {
    EXPECT_EQ(small[i].parent, large[i].parent);
    EXPECT_EQ(small[i].rank, large[i].rank);
  }
  EXPECT_EQ(large[1].parent, 1) << "a second first choice before a second choice";
}

TEST(RankTree, HalvesItsBreadth) {
  const RankTree tree = HalvingTree(37);
  ExpectWhole(tree);
  ASSERT_EQ(tree.size(), 37U);
  std::vector<int> depths(tree.size() + 1, 0);
  std::vector<int> levels(4, 0);
  for (std::size_t i = 0; i < tree.size(); ++i) {
    ++levels[depths[i + 1] = depths[tree[i].parent] + 1];
  }
  EXPECT_THAT(levels, ElementsAre(0, 8, 4 + 2 + 6, (4 + 2 + 1 + 1) + (2 + 1) + 6));
}

TEST(Recycle, ProposesWhatTheTargetSaidBehindTheSameTokens) {
  ScriptedDecoding decoding(DrafterId::kRecycle, Descending);
  decoding.lookahead = decoding.max_nodes = 15;
  ScriptedDecoding::Sequence sequence{.tokens = {3}};
  decoding.Prefill(&sequence);
  EXPECT_EQ(sequence.tokens, (std::vector<Token>{3, 4}));
  decoding.Round(&sequence);
  EXPECT_EQ(sequence.proposal.size(), 0) << "nothing was said behind 4";
  sequence.tokens = {3};
  decoding.Round(&sequence);
  // 4 to 7, 0 ... behind 3, and 5, 6 ... behind 4, but nothing was said behind the others.
  EXPECT_EQ(sequence.proposal.size(), 15);
  EXPECT_GT(sequence.proposal.ChildWith(0, 4), 0);
  EXPECT_GT(sequence.proposal.ChildWith(0, 5), 0);
  EXPECT_GT(sequence.proposal.ChildWith(sequence.proposal.ChildWith(0, 4), 5), 0);
  EXPECT_EQ(sequence.proposal.FirstChild(sequence.proposal.ChildWith(0, 5)), 0);
  // Now something was said behind these: rejected tokens are learned from, too.
  decoding.Round(&sequence);
  EXPECT_GT(sequence.proposal.FirstChild(sequence.proposal.FirstChild(0)), 0);
  EXPECT_LT(decoding.Decode({0}, 100).rounds, 30);
}

TEST(Recycle, OfOneTokenTheAcceptedNodeIsHeard) {
  SuccessorMatrix matrix(8);
  Proposal proposal;
  proposal.Append(0, 5);
  proposal.Append(0, 6);
  proposal.Append(2, 5);
  std::vector<float> rows(4 * 8, 0.0F);
  for (int node = 0; node < 4; ++node) rows[node * 8 + node] = 1.0F;
  const std::vector<Token> tokens = {5};
  VerifiedProposal verified{.tokens = tokens, .proposal = &proposal, .logits = rows.data()};
  matrix.Learn(verified);
  EXPECT_EQ(matrix.At(5, 0), 0) << "the root";
  verified.outcome.node = 1;
  matrix.Learn(verified);
  EXPECT_EQ(matrix.At(5, 0), 1);
  EXPECT_EQ(matrix.At(6, 0), 2);
  verified.outcome.node = 3;
  matrix.Learn(verified);
  EXPECT_EQ(matrix.At(5, 0), 3);
  EXPECT_EQ(matrix.At(4, 0), -1);
  matrix.Clear();
  EXPECT_EQ(matrix.At(5, 0), -1);
}

TEST(Recycle, ScopesAreKeptApart) {
  for (const DrafterId id : {DrafterId::kRecycle, DrafterId::kRacer}) {
    ScriptedDecoding decoding(id, Descending);
    decoding.lookahead = decoding.max_nodes = 15;
    decoding.Decode({0}, 50, 1);
    ScriptedDecoding::Sequence same{.id = 50, .tokens = {3}, .scope = 1};
    ScriptedDecoding::Sequence other{.id = 51, .tokens = {3}, .scope = 2};
    decoding.Round(&same);
    decoding.Round(&other);
    EXPECT_EQ(same.proposal.size(), 15);
    EXPECT_EQ(other.proposal.size(), 0);
    // Scopes that come after push the first one out.
    for (std::uint64_t scope = 10; scope < 20; ++scope) decoding.Decode({0}, 5, scope);
    decoding.drafter().Forget(same.id);
    same.tokens = {3};
    decoding.Round(&same);
    EXPECT_EQ(same.proposal.size(), 0);
  }
}

}  // namespace
}  // namespace foretoken
