#pragma once

#include <cstdint>
#include <span>

#include "base/static_vector.h"
#include "speculation/plan.h"
#include "speculation/proposal.h"
#include "speculation/tree_shape.h"

namespace foretoken {

/// The draft's best tokens after some node, best first, under the shared noise of that position.
using Ranking = StaticVector<Token, kMaxRanking>;

/// A proposal as it grows along a TreeShape: a node whose row the draft has computed is ranked, and
/// its ranking gives it the children that the shape wants. What a row number means (a KV slot, a
/// stored ranking) is the owner's.
class DraftTree {
 public:
  DraftTree() { Clear(); }

  /// Only the root is left, without a row.
  void Clear();
  /// A tree that was made elsewhere and does not grow: no node has a row.
  void Assign(const Proposal& proposal);

  const Proposal& proposal() const { return proposal_; }
  /// Nodes with the root.
  int nodes() const { return proposal_.size() + 1; }

  /// The row that ranked `node`; -1 where there is none yet. Where the draft says several positions
  /// in a pass, that is the root's for all nodes below it.
  int row(int node) const { return rows_[node]; }
  bool ranked(int node) const { return rows_[node] >= 0; }
  /// Whether that row has read the node's own token.
  bool has_own_row(int node) const {
    return ranked(node) && (node == 0 || rows_[node] != rows_[0]);
  }
  void SetRow(int node, int row) { rows_[node] = static_cast<std::int16_t>(row); }

  /// Whether `node` is not ranked yet and `shape` wants children below it.
  bool Wants(int node, const TreeShape& shape) const;
  /// Nothing is to be drafted below `node`: it carries a stop token.
  void Close(int node) { shape_nodes_[node] = -1; }
  /// The estimated probability that verification comes to `node`, which Wants.
  double Reached(int node, const TreeShape& shape) const {
    return shape.nodes[shape_nodes_[node]].reached;
  }

  /// Makes `node` ranked by `row` and adds the children that the shape wants, as far as there are
  /// candidates; they are the tree's last nodes. Returns how many.
  int Grow(int node, int row, const TreeShape& shape, std::span<const Token> ranking);

 private:
  void AddNode(int shape_node);

  Proposal proposal_;
  StaticVector<std::int16_t, kMaxProposal + 1> rows_;
  StaticVector<std::int8_t, kMaxProposal + 1> shape_nodes_;  // -1: does not grow.
};

}  // namespace foretoken
