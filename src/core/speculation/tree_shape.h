#pragma once

#include <algorithm>
#include <cstdint>

#include "base/static_vector.h"
#include "core/speculation/outcome_predictor.h"
#include "core/speculation/proposal.h"

namespace foretoken {

/// Which nodes a drafted tree is to have, before any of its tokens is known: node 0 is the root,
/// every other one the candidate of a rank below an earlier node. In descending order of `reached`.
struct TreeShape {
  struct Node {
    std::int8_t parent = 0;
    std::int8_t rank = 0;   ///< Among the draft's candidates after the parent.
    std::int8_t depth = 0;  ///< The node's depth; the root has 0.
    bool inner = false;     ///< Has children.
    double reached = 1;     ///< Estimated probability that verification accepts the path to it.
  };
  StaticVector<Node, kMaxProposal + 1> nodes;

  /// Below the root.
  int levels() const {
    int deepest = 0;
    for (const Node& node : nodes) deepest = std::max<int>(deepest, node.depth);
    return deepest;
  }
  /// How many nodes that have children, the root aside, verification is likely to come to, of those
  /// above level `depths`.
  double ExpectedInner(int depths) const {
    double sum = 0;
    for (const Node& node : nodes) {
      if (node.inner && node.depth > 0 && node.depth < depths) sum += node.reached;
    }
    return sum;
  }
};

/// The most probable `max_nodes` nodes (the root aside) of at most `width` children each and
/// `depth` levels: best first, which maximises the expected accepted tokens if candidates come true
/// independently with the predictor's probabilities. Width 1 is a chain.
TreeShape MakeTreeShape(const OutcomePredictor& predictor, int width, int depth, int max_nodes);

}  // namespace foretoken
