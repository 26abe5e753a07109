#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/draft/ensemble/agreement_record.h"
#include "core/draft/ensemble/path_record.h"
#include "core/speculation/proposal.h"

namespace foretoken {

/// Proposals of several drafters for one place become one tree (SpecInfer, Miao et al. 2023): equal
/// paths are one node. Its chance given its parent is what came of nodes that the same drafters
/// agreed on (AgreementRecord); before any was seen that of not all of them being wrong,
/// 1 - prod(1 - p), as if they erred independently. A node's own chance is the product along its
/// path. For one thread; allocates nothing once it has grown.
class PathMerge {
 public:
  /// Room for that many proposals.
  explicit PathMerge(std::size_t proposals = 0);

  void Clear();
  /// Merges in the proposal of drafter number `member`, whose records say `chances` of it.
  void Add(std::size_t member, const Proposal& proposal, const PathChances& chances);
  /// Tokens that came true, by the first drafter that proposed them.
  using Credits = std::array<int, AgreementRecord::kMembers>;
  /// `text` came: notes in both records which nodes on its way were right, and which were not.
  /// Credits are of the nodes that Best had kept.
  Credits Compare(std::span<const Token> text, AgreementRecord* all, AgreementRecord* own) const;
  /// Fills `tree` with the likeliest nodes: `max_nodes` at most, down to `max_depth`, in the order
  /// of their chances, parents before children. With `prices` (DraftContext::row_prices) as many of
  /// them as gain most: the sum of their chances less their prices.
  void Best(const AgreementChances& chances, int max_depth, int max_nodes,
            std::span<const double> prices, Proposal* tree);

  /// Merged nodes without the root.
  int size() const { return std::ssize(nodes_) - 1; }

 private:
  struct Node {
    Token token = -1;
    std::int16_t parent = 0;
    std::int16_t first_child = 0;  // 0: none.
    std::int16_t sibling = 0;      // The next one; 0: none.
    bool kept = false;
    Agreement agreement{.depth = 0};
    double wrong = 1;    // P(none of its proposers is right | the parent is).
    double reached = 1;  // P(the text comes to it).
  };
  // The child of `parent` with that token, which may be new.
  int ChildOf(int parent, Token token);

  std::vector<Node> nodes_;  // Parents before children; the root first.
  std::vector<std::int16_t> order_;
  std::vector<std::int8_t> number_;  // The number of each node in the tree; -1: not there.
};

}  // namespace foretoken
