#include "core/speculation/tree_shape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/numbers/integers.h"

namespace foretoken {
namespace {

/// A predictor that has learned: candidate 0 with probability a, 1 with b, 2 with c.
OutcomePredictor Learned(int a, int b, int c) {
  OutcomePredictor predictor;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 100; ++i) {
      const int draw = i * 37 % 100;
      predictor.Observe(false, draw < a ? 0 : draw < a + b ? 1 : draw < a + b + c ? 2 : -1);
    }
  }
  return predictor;
}

double Expected(const TreeShape& shape) {
  double sum = 0;
  for (std::size_t i = 1; i < shape.nodes.size(); ++i) sum += shape.nodes[i].reached;
  return sum;
}

TEST(TreeShape, WidthOneIsAChainOfKNodes) {
  const OutcomePredictor predictor = Learned(60, 20, 10);
  const TreeShape shape = MakeTreeShape(predictor, 1, 5, 63);
  ASSERT_EQ(shape.nodes.size(), 6U);
  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(shape.nodes[i].parent, i - 1);
    EXPECT_EQ(shape.nodes[i].rank, 0);
    EXPECT_EQ(shape.nodes[i].depth, i);
    EXPECT_EQ(shape.nodes[i].inner, i < 5);
    EXPECT_NEAR(shape.nodes[i].reached, std::pow(predictor.acceptance(), i), 1e-12);
  }
  EXPECT_EQ(MakeTreeShape(predictor, 1, 5, 3).nodes.size(), 4U);
  EXPECT_EQ(MakeTreeShape(predictor, 3, 0, 3).nodes.size(), 1U);
}

TEST(TreeShape, KeepsToItsBounds) {
  for (const int width : {2, 3, kMaxTreeWidth}) {
    for (const int depth : {1, 3, 6, kMaxProposal}) {
      const TreeShape shape = MakeTreeShape(Learned(50, 25, 10), width, depth, kMaxProposal);
      std::vector<int> children(shape.nodes.size(), 0);
      for (std::size_t i = 1; i < shape.nodes.size(); ++i) {
        const TreeShape::Node& node = shape.nodes[i];
        ASSERT_LT(node.parent, Int(i));
        EXPECT_EQ(node.depth, shape.nodes[node.parent].depth + 1);
        EXPECT_LE(node.depth, depth);
        // Siblings come by rank, without gaps.
        EXPECT_EQ(node.rank, children[node.parent]++);
        EXPECT_LE(node.reached, shape.nodes[node.parent].reached);
      }
      for (std::size_t i = 0; i < shape.nodes.size(); ++i) {
        EXPECT_LE(children[i], width);
        EXPECT_EQ(shape.nodes[i].inner, children[i] > 0);
      }
      if (depth == 1) {
        EXPECT_EQ(shape.nodes.size(), std::size_t(width) + 1);
      }
    }
  }
}

// Best first is the best: no tree of the same size, grown in any other way, expects more.
TEST(TreeShape, NoTreeOfTheSameSizeExpectsMore) {
  const OutcomePredictor predictor = Learned(55, 25, 8);
  const int nodes = 7;
  const double best = Expected(MakeTreeShape(predictor, 3, 4, nodes));
  // All trees of 7 nodes: each next node is any absent child of any present node.
  struct Grown {
    std::vector<TreeShape::Node> nodes = {{}};
  };
  double most = 0;
  const auto grow = [&](auto& self, Grown& tree, std::size_t first, double sum) -> void {
    if (std::ssize(tree.nodes) == nodes + 1) {
      most = std::max(most, sum);
      return;
    }
    for (std::size_t parent = first; parent < tree.nodes.size(); ++parent) {
      if (tree.nodes[parent].depth == 4) continue;
      for (int rank = 0; rank < 3; ++rank) {
        bool present = false;
        for (std::size_t i = 1; i < tree.nodes.size(); ++i) {
          present = present || (tree.nodes[i].parent == Int(parent) && tree.nodes[i].rank == rank);
        }
        if (present) continue;
        const double reached = tree.nodes[parent].reached * predictor.Probability(false, rank);
        tree.nodes.push_back({.parent = static_cast<std::int8_t>(parent),
                              .rank = static_cast<std::int8_t>(rank),
                              .depth = static_cast<std::int8_t>(tree.nodes[parent].depth + 1),
                              .reached = reached});
        self(self, tree, parent, sum + reached);
        tree.nodes.pop_back();
      }
    }
  };
  Grown tree;
  grow(grow, tree, 0, 0);
  EXPECT_NEAR(best, most, 1e-12);
  EXPECT_GT(best, Expected(MakeTreeShape(predictor, 1, 4, nodes)) + 0.1);
}

}  // namespace
}  // namespace foretoken
