#pragma once

#include <cstdint>
#include <span>

#include "base/static_vector.h"
#include "core/draft/model/chance_table.h"
#include "core/draft/model/ranking.h"
#include "core/speculation/plan.h"
#include "core/speculation/proposal.h"
#include "core/speculation/tree_shape.h"

namespace foretoken {

/// Trees grow best first, by what the draft says in their context (EAGLE-2's dynamic trees): of all
/// candidates after ranked nodes the likeliest to be accepted, with all before them, become nodes.
/// Only where proposals may be anything: a tree whose shape depends on what was drawn would bias
/// what rejection verification emits.
struct BestFirst {
  int width = 1;      ///< Children of a node, at most.
  int depth = 0;      ///< Levels below the root, at most.
  int max_nodes = 0;  ///< Without the root.
  /// Candidates below it are not worth a row of the draft: how likely the last node of an average
  /// tree of this size is to be accepted.
  double cutoff = 0;
  double first = 1;  ///< The average chance of a node's first child.
  ChanceTable* chances = nullptr;
};

/// A proposal as it grows: a node whose row the draft has computed is ranked, and its ranking gives
/// it children. What a row number means (a KV slot, a stored ranking) is the owner's.
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
  int row(int node) const { return nodes_[node].row; }
  bool ranked(int node) const { return row(node) >= 0; }
  /// Whether that row has read the node's own token.
  bool has_own_row(int node) const { return ranked(node) && (node == 0 || row(node) != row(0)); }
  void SetRow(int node, int row) { nodes_[node].row = static_cast<std::int16_t>(row); }

  /// Whether `node` is not ranked yet and children are wanted below it: along `shape`, but where
  /// the tree grows best first.
  bool Wants(int node, const TreeShape& shape) const;
  /// Nothing is to be drafted below `node`: it carries a stop token.
  void Close(int node) { nodes_[node].open = false; }
  /// The estimated probability that verification comes to `node` of a tree that grows.
  double Reached(int node) const { return nodes_[node].reached; }

  /// Before Grow: the first child of `node` is accepted with this chance once verification comes to
  /// the node, whatever the shape says of an average tree. The node gets no children where theirs
  /// would not be worth their rows.
  void Expect(int node, double chance);

  /// Makes `node` ranked by `row` and adds the children that the shape wants, as far as there are
  /// candidates; they are the tree's last nodes. Returns how many.
  int Grow(int node, int row, const TreeShape& shape, const Ranking& ranking);

  /// Makes of a tree that grows best first that of the likeliest candidates of all ranked nodes,
  /// which may drop nodes and add others; ranked ones come first, in their order. Returns the
  /// number that each node had before, 0 for those that are new and the root.
  StaticVector<std::int8_t, kMaxProposal + 1> KeepBest(const BestFirst& rule,
                                                       std::span<const Ranking> rankings);

 private:
  struct Node {
    std::int16_t row = -1;
    std::int8_t shape_node = 0;  // Which one of the shape; -1 in a tree that grows best first.
    std::int8_t rank = 0;        // Among the candidates after its parent.
    bool open = true;            // May be ranked and get children.
    float reached = 1;
    float first = -1;  // The chance of its first child; -1: as the shape says.
  };
  // A candidate after a ranked node.
  struct Candidate {
    std::int8_t parent = 0;
    std::int8_t rank = 0;
    std::int8_t node = 0;  // 0: it is none yet.
    double reached = 0;
  };
  using Candidates = StaticVector<Candidate, kMaxProposal>;

  // The likeliest ones, in descending order, parents before children.
  Candidates Best(const BestFirst& rule, std::span<const Ranking> rankings) const;
  double ReachedChild(int node, int rank, const TreeShape& shape, int child) const;
  void AddCandidate(const Candidate& candidate, Token token, const BestFirst& rule);

  Proposal proposal_;
  StaticVector<Node, kMaxProposal + 1> nodes_;
};

}  // namespace foretoken
