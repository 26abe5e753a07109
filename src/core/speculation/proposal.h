#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/static_vector.h"
#include "foretoken/speculation.h"
#include "foretoken/types.h"

namespace foretoken {

/// A token tree rooted at the last committed token. Node 0 is the root; node i + 1 carries
/// tokens[i] and hangs below node parents[i] <= i. A chain has parents {0, 1, 2, ...}.
struct Proposal {
  StaticVector<Token, kMaxProposal> tokens;
  StaticVector<std::int8_t, kMaxProposal> parents;
  ProposalSource source = ProposalSource::kNone;

  int size() const { return tokens.size(); }
  bool IsChain() const;
  /// The child of `node` that carries `token`; 0 where there is none.
  int ChildWith(int node, Token token) const;
  /// The first child of `node`; 0 where it is a leaf.
  int FirstChild(int node) const;
  /// How many children `node` has.
  int Children(int node) const { return std::count(parents.begin(), parents.end(), node); }
  /// Steps from the root to `node`.
  int Depth(int node) const;
  /// Appends below node `parent` <= size().
  void Append(int parent, Token token) {
    parents.push_back(static_cast<std::int8_t>(parent));
    tokens.push_back(token);
  }
  /// Appends below the last node.
  void Extend(Token token) { Append(size(), token); }
  void Clear() {
    tokens.clear();
    parents.clear();
    source = ProposalSource::kNone;
  }
  /// Keeps the first `size` nodes.
  void Truncate(int size) {
    tokens.resize(size);
    parents.resize(size);
  }
  /// Keeps the nodes of which `keep(node, parent)` is true and whose parents stay. It is asked in
  /// their order, and of no others.
  template <typename Keep>
  void KeepIf(Keep&& keep) {
    std::array<std::int8_t, kMaxProposal + 1> place{};  // The node's new number; -1: dropped.
    int count = 0;
    for (int i = 0; i < size(); ++i) {
      const int parent = parents[i];
      place[i + 1] = -1;
      if (place[parent] < 0 || !keep(i + 1, parent)) continue;
      parents[count] = place[parent];
      tokens[count] = tokens[i];
      place[i + 1] = static_cast<std::int8_t>(++count);
    }
    Truncate(count);
  }
  /// Keeps the nodes of at most that depth, and of them the first `max_nodes`.
  void Prune(int max_depth, int max_nodes);
};

/// The nodes from below the root to `node`, in order.
StaticVector<std::int8_t, kMaxProposal> PathTo(const Proposal& proposal, int node);

/// Their tokens.
StaticVector<Token, kMaxProposal> PathTokens(const Proposal& proposal, int node);

/// What verification found: the deepest accepted node (0: none) and the target's own next token.
struct Outcome {
  std::int32_t node = 0;
  Token bonus = -1;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

}  // namespace foretoken
