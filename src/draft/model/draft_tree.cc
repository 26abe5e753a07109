#include "draft/model/draft_tree.h"

namespace foretoken {

void DraftTree::Clear() {
  proposal_.Clear();
  rows_.clear();
  shape_nodes_.clear();
  AddNode(0);
}

void DraftTree::Assign(const Proposal& proposal) {
  Clear();
  proposal_ = proposal;
  shape_nodes_[0] = -1;
  for (int i = 0; i < proposal.size(); ++i) AddNode(-1);
}

void DraftTree::AddNode(int shape_node) {
  rows_.push_back(-1);
  shape_nodes_.push_back(static_cast<std::int8_t>(shape_node));
}

bool DraftTree::Wants(int node, const TreeShape& shape) const {
  return !ranked(node) && shape_nodes_[node] >= 0 && shape.nodes[shape_nodes_[node]].inner;
}

int DraftTree::Grow(int node, int row, const TreeShape& shape, std::span<const Token> ranking) {
  SetRow(node, row);
  const int before = proposal_.size();
  const int at = shape_nodes_[node];
  if (at < 0) return 0;
  // Siblings come by rank in the shape, so they do here.
  for (std::size_t i = at + 1; i < shape.nodes.size(); ++i) {
    const TreeShape::Node& child = shape.nodes[i];
    if (child.parent != at || child.rank >= static_cast<int>(ranking.size())) continue;
    proposal_.Append(node, ranking[child.rank]);
    AddNode(static_cast<int>(i));
  }
  return proposal_.size() - before;
}

}  // namespace foretoken
