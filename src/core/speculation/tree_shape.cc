#include "core/speculation/tree_shape.h"

namespace foretoken {

TreeShape MakeTreeShape(const OutcomePredictor& predictor, int width, int depth, int max_nodes) {
  TreeShape shape;
  shape.nodes.push_back({});
  // Nodes that may come next: below each node the best child that it does not have yet.
  StaticVector<TreeShape::Node, kMaxProposal + 1> open;
  const auto open_child = [&](int parent, int rank) {
    const TreeShape::Node& above = shape.nodes[parent];
    if (rank >= width || above.depth >= depth) return;
    open.push_back({.parent = static_cast<std::int8_t>(parent),
                    .rank = static_cast<std::int8_t>(rank),
                    .depth = static_cast<std::int8_t>(above.depth + 1),
                    .reached = above.reached * predictor.Probability(/*leaf=*/false, rank)});
  };
  open_child(0, 0);
  max_nodes = std::min(max_nodes, kMaxProposal);
  while (!open.empty() && std::ssize(shape.nodes) <= max_nodes) {
    TreeShape::Node* best =
        std::max_element(open.begin(), open.end(),
                         [](const auto& a, const auto& b) { return a.reached < b.reached; });
    const TreeShape::Node node = *best;
    *best = open.back();
    open.resize(open.size() - 1);
    const int index = shape.nodes.size();
    shape.nodes.push_back(node);
    shape.nodes[node.parent].inner = true;
    open_child(index, 0);
    open_child(node.parent, node.rank + 1);
  }
  return shape;
}

}  // namespace foretoken
