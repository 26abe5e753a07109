#include "core/draft/model/draft_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace foretoken {
namespace {

constexpr int kRankedTokens = 8;

// A draft that says something random after every path, and a tree that grows by it.
class BestFirstTest : public testing::TestWithParam<int> {
 protected:
  BestFirstTest() : random_(static_cast<unsigned>(GetParam())) {
    rule_ = {.width = Between(2, 5),
             .depth = Between(1, 6),
             .max_nodes = Between(1, kMaxProposal),
             .cutoff = 0.001 * Between(1, 200),
             .first = 0.7,
             .chances = &table_};
  }

  int Between(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }

  Ranking RandomRanking() {
    Ranking ranking;
    std::vector<double> scores;
    for (int i = 0; i < kRankedTokens; ++i) {
      ranking.push_back({.token = Between(0, 1000) * kRankedTokens + i});
      scores.push_back(std::normal_distribution(0.0, 3.0)(random_));
    }
    std::ranges::sort(scores, std::greater());
    SetLogOdds(scores, 1, &ranking);
    return ranking;
  }

  // As a draft's pass does: all nodes that want it are ranked, each by the row of its number.
  std::vector<int> RankWanted() {
    std::vector<int> wanted;
    for (int node = 0; node < tree_.nodes(); ++node) {
      if (tree_.Wants(node, shape_)) wanted.push_back(node);
    }
    for (const int node : wanted) {
      rankings_[node] = RandomRanking();
      tree_.SetRow(node, node);
    }
    return wanted;
  }

  // As its owner does: rows go where their nodes go.
  StaticVector<std::int8_t, kMaxProposal + 1> KeepBest() {
    const auto origins = tree_.KeepBest(rule_, rankings_);
    for (int node = 1; node < tree_.nodes(); ++node) {
      if (!tree_.ranked(node)) continue;
      EXPECT_LE(node, origins[node]);
      rankings_[node] = rankings_[origins[node]];
      tree_.SetRow(node, node);
    }
    return origins;
  }

  // Whether the tree's nodes are candidates of their parents, and what their chances say.
  void CheckNodes() const {
    const Proposal& proposal = tree_.proposal();
    ASSERT_LE(proposal.size(), rule_.max_nodes);
    for (int node = 1; node < tree_.nodes(); ++node) {
      const int parent = proposal.parents[node - 1];
      ASSERT_LT(parent, node);
      ASSERT_TRUE(tree_.ranked(parent));
      const Ranking& ranking = rankings_[tree_.row(parent)];
      const int rank = RankOf(ranking, proposal.tokens[node - 1]);
      ASSERT_GE(rank, 0);
      ASSERT_LT(rank, rule_.width);
      const double chance = ChancesOf(table_, ranking, rule_.width)[rank];
      EXPECT_NEAR(tree_.Reached(node), tree_.Reached(parent) * chance, 1e-6);
      EXPECT_LE(proposal.Depth(node), rule_.depth);
      EXPECT_EQ(proposal.ChildWith(parent, proposal.tokens[node - 1]), node);
    }
  }

  // Whether no candidate that was left out is likelier than a node.
  void CheckNoneBetter(const std::vector<double>& candidates) const {
    std::vector<double> kept;
    for (int node = 1; node < tree_.nodes(); ++node) kept.push_back(tree_.Reached(node));
    std::ranges::sort(kept, std::greater());
    ASSERT_EQ(kept.size(), std::min<std::size_t>(candidates.size(), rule_.max_nodes));
    for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_NEAR(kept[i], candidates[i], 1e-6);
  }

  std::mt19937 random_;
  ChanceTable table_{1};
  BestFirst rule_;
  TreeShape shape_ = MakeTreeShape({}, 2, 1, 2);  // By which only the root grows.
  DraftTree tree_;
  std::vector<Ranking> rankings_ = std::vector<Ranking>(kMaxProposal + 1);
};

TEST_P(BestFirstTest, KeepsTheLikeliestOfAllThatWereExpanded) {
  int passes = 0;
  std::vector<double> candidates;  // The chances of all candidates, those of dropped nodes too.
  for (std::vector<int> ranked = RankWanted(); !ranked.empty(); ranked = RankWanted()) {
    ++passes;
    for (const int node : ranked) {
      for (const double chance : ChancesOf(table_, rankings_[node], rule_.width)) {
        candidates.push_back(tree_.Reached(node) * chance);
      }
    }
    std::ranges::sort(candidates, std::greater());
    KeepBest();
    CheckNodes();
    CheckNoneBetter(candidates);
  }
  EXPECT_LE(passes, rule_.depth);
  EXPECT_GT(tree_.nodes(), 1);
  // Nothing is left to change.
  const Proposal before = tree_.proposal();
  const auto origins = KeepBest();
  for (int node = 0; node < tree_.nodes(); ++node) {
    EXPECT_TRUE(origins[node] == node || !tree_.ranked(node));
  }
  EXPECT_EQ(tree_.proposal().size(), before.size());
}

TEST_P(BestFirstTest, NothingGrowsBelowAClosedNode) {
  RankWanted();
  KeepBest();
  if (rule_.depth == 1) return;
  tree_.Close(1);
  EXPECT_FALSE(tree_.Wants(1, shape_));
  RankWanted();
  KeepBest();
  for (const std::int8_t parent : tree_.proposal().parents) {
    EXPECT_TRUE(parent == 0 || tree_.ranked(parent));
  }
}

INSTANTIATE_TEST_SUITE_P(Random, BestFirstTest, testing::Range(0, 60));

TEST(DraftTree, OfNoDepthHasNoNodes) {
  ChanceTable table(1);
  const BestFirst rule{.width = 3, .depth = 0, .max_nodes = 5, .chances = &table};
  DraftTree tree;
  tree.SetRow(0, 0);
  Ranking ranking;
  ranking.push_back({.token = 1});
  EXPECT_EQ(tree.KeepBest(rule, std::span(&ranking, 1)).size(), 1U);
}

// The expectations of a chain of five whose average node is accepted with 0.8.
class ExpectTest : public testing::Test {
 protected:
  ExpectTest() {
    for (int depth = 1; depth <= 5; ++depth) {
      shape_.nodes.push_back({.parent = static_cast<std::int8_t>(depth - 1),
                              .depth = static_cast<std::int8_t>(depth),
                              .inner = depth < 5,
                              .reached = shape_.nodes.back().reached * 0.8});
    }
    ranking_.push_back({.token = 7});
    ranking_.push_back({.token = 8});
  }
  static TreeShape Root() {
    TreeShape shape;
    shape.nodes.push_back({.inner = true});
    return shape;
  }

  TreeShape shape_ = Root();
  Ranking ranking_;
  DraftTree tree_;
};

TEST_F(ExpectTest, IsWhatChildrenAreReachedWith) {
  tree_.Expect(0, 0.5);
  EXPECT_EQ(tree_.Grow(0, 0, shape_, ranking_), 1);
  EXPECT_FLOAT_EQ(tree_.Reached(1), 0.5);
  tree_.Expect(1, 0.9);
  EXPECT_EQ(tree_.Grow(1, 0, shape_, ranking_), 1);
  EXPECT_FLOAT_EQ(tree_.Reached(2), 0.45);
  EXPECT_TRUE(tree_.Wants(2, shape_));
}

TEST_F(ExpectTest, EndsAChainWhereItsNextTokenIsSeldomAccepted) {
  tree_.Expect(0, 0.2);
  EXPECT_EQ(tree_.Grow(0, 0, shape_, ranking_), 1);
  tree_.Expect(1, 0.2);
  EXPECT_EQ(tree_.Grow(1, 0, shape_, ranking_), 0);
  EXPECT_FALSE(tree_.Wants(1, shape_));
  EXPECT_EQ(tree_.proposal().size(), 1);
}

TEST_F(ExpectTest, LeavesSiblingsWhatTheFirstDoesNotTake) {
  shape_.nodes.resize(2);
  shape_.nodes.push_back({.parent = 0, .rank = 1, .depth = 1, .reached = 0.3});
  tree_.Expect(0, 0.9);
  EXPECT_EQ(tree_.Grow(0, 0, shape_, ranking_), 2);
  EXPECT_FLOAT_EQ(tree_.Reached(1), 0.9);
  EXPECT_NEAR(tree_.Reached(2), 0.1, 1e-6);
}

}  // namespace
}  // namespace foretoken
