#pragma once

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

  int size() const { return static_cast<int>(tokens.size()); }
  bool IsChain() const;
  /// The child of `node` that carries `token`; 0 where there is none.
  int ChildWith(int node, Token token) const;
  /// The first child of `node`; 0 where it is a leaf.
  int FirstChild(int node) const;
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
  /// Keeps the nodes of at most that depth, and of them the first `max_nodes`.
  void Prune(int max_depth, int max_nodes);
};

/// What verification found: the deepest accepted node (0: none) and the target's own next token.
struct Outcome {
  std::int32_t node = 0;
  Token bonus = -1;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

}  // namespace foretoken
