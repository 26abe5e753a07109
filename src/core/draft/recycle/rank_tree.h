#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/draft/drafter.h"

namespace foretoken {

/// M of Token Recycling (Luo et al., 2024, Section 3.1): of every token the k = 8 tokens that the
/// target said likeliest behind it when it last said something behind it, in whatever context. 32
/// bytes a token of the vocabulary. Not thread-safe.
class SuccessorMatrix {
 public:
  static constexpr int kRanks = 8;

  explicit SuccessorMatrix(int vocabulary);

  /// The successor of rank 0 .. kRanks - 1; -1 where it is not known.
  Token At(Token token, int rank) const { return rows_[token][rank]; }
  /// Takes what a pass said of the root and of every node, accepted or not. Where several carry one
  /// token the accepted node is heard, of several such the last.
  void Learn(const VerifiedProposal& verified);
  void Clear();

 private:
  using Row = std::array<Token, kRanks>;

  void Update(Token token, Logits row);

  std::vector<Row> rows_;  // [vocabulary]
};

/// A node of a static tree of ranks: the successor of that rank of its parent's token.
struct RankNode {
  std::int16_t parent;  ///< Its place in the tree, from 1 on; 0 is the root.
  std::uint8_t rank;    ///< From 0 on.
};

/// A static tree, parents before children, in the order in which nodes are worth having.
using RankTree = std::vector<RankNode>;

/// The tree whose nodes have the highest products of 1 / r^2 over the ranks r = 1 .. 8 on their
/// paths, as if the r-th successor came true r^2 times more rarely than the first, and that 0.6 of
/// the time: narrow at depth, wide below likely nodes, as the tree of 80 nodes that Token Recycling
/// found by a search (Section 3.2) is. Its first n nodes are the best n.
RankTree RankProductTree(int nodes);

/// RACER's logits tree (arXiv 2604.14885): breadth first, the root's 8 children have breadths 4, 2,
/// 1, 1 ...; a node of breadth b has b children, of breadths b, b / 2 ... below the root's children
/// and b / 2, b / 4 ... further down, 1 at least.
RankTree HalvingTree(int nodes);

/// Adds the nodes of `tree` whose tokens `matrix` knows, up to the context's limits, to its
/// proposal; those that are there already are not added again.
void AppendRanks(const RankTree& tree, const SuccessorMatrix& matrix, const DraftContext& context);

}  // namespace foretoken
