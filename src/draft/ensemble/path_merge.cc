#include "draft/ensemble/path_merge.h"

#include <algorithm>
#include <array>

namespace foretoken {

PathMerge::PathMerge(std::size_t proposals) {
  const std::size_t most = proposals * kMaxProposal + 1;
  nodes_.reserve(most);
  order_.reserve(most);
  number_.reserve(most);
  Clear();
}

void PathMerge::Clear() {
  nodes_.clear();
  nodes_.push_back({});
}

int PathMerge::ChildOf(int parent, Token token) {
  int last = 0;
  for (int child = nodes_[parent].first_child; child != 0; child = nodes_[child].sibling) {
    if (nodes_[child].token == token) return child;
    last = child;
  }
  const auto child = static_cast<std::int16_t>(nodes_.size());
  nodes_.push_back({.token = token,
                    .parent = static_cast<std::int16_t>(parent),
                    .depth = static_cast<std::int8_t>(nodes_[parent].depth + 1)});
  (last == 0 ? nodes_[parent].first_child : nodes_[last].sibling) = child;
  return child;
}

void PathMerge::Add(const Proposal& proposal, const PathChances& chances) {
  std::array<std::int16_t, kMaxProposal + 1> merged{};
  std::array<std::int8_t, kMaxProposal + 1> children{};
  for (int i = 0; i < proposal.size(); ++i) {
    const int parent = proposal.parents[i];
    const int rank = children[parent]++;
    const int node = ChildOf(merged[parent], proposal.tokens[i]);
    merged[i + 1] = static_cast<std::int16_t>(node);
    nodes_[node].wrong *= 1 - std::min(1.0, chances.At(nodes_[node].depth, rank));
  }
}

void PathMerge::Best(int max_depth, int max_nodes, std::span<const double> prices, Proposal* tree) {
  order_.clear();
  for (int node = 1; node <= size(); ++node) {
    Node& at = nodes_[node];
    at.reached = nodes_[at.parent].reached * (1 - at.wrong);
    if (at.depth <= max_depth) order_.push_back(static_cast<std::int16_t>(node));
  }
  // No child has a larger chance than its parent, which comes first where they are equal.
  std::ranges::sort(order_, [this](std::int16_t a, std::int16_t b) {
    if (nodes_[a].reached != nodes_[b].reached) return nodes_[a].reached > nodes_[b].reached;
    return a < b;
  });
  order_.resize(std::min(order_.size(), static_cast<std::size_t>(std::max(max_nodes, 0))));
  std::size_t kept = prices.empty() ? order_.size() : 0;
  double gain = 0;
  double best_gain = 0;
  for (std::size_t i = 0; i < order_.size() && !prices.empty(); ++i) {
    gain += nodes_[order_[i]].reached - prices[std::min(i, prices.size() - 1)];
    if (gain < best_gain) continue;
    best_gain = gain;
    kept = i + 1;
  }
  tree->Clear();
  number_.assign(nodes_.size(), -1);
  number_[0] = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    const Node& node = nodes_[order_[i]];
    tree->Append(number_[node.parent], node.token);
    number_[order_[i]] = static_cast<std::int8_t>(tree->size());
  }
}

}  // namespace foretoken
