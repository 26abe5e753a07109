#include "core/draft/ensemble/path_merge.h"

#include <algorithm>
#include <bit>

#include "base/numbers/integers.h"

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
  Node& node = nodes_.emplace_back();
  node.token = token;
  node.parent = static_cast<std::int16_t>(parent);
  node.agreement.depth = static_cast<std::int8_t>(nodes_[parent].agreement.depth + 1);
  node.agreement.rank = kMaxProposal;
  (last == 0 ? nodes_[parent].first_child : nodes_[last].sibling) = child;
  return child;
}

void PathMerge::Add(std::size_t member, const Proposal& proposal, const PathChances& chances) {
  std::array<std::int16_t, kMaxProposal + 1> merged{};
  std::array<std::int8_t, kMaxProposal + 1> children{};
  for (int i = 0; i < proposal.size(); ++i) {
    const int parent = proposal.parents[i];
    const std::int8_t rank = children[parent]++;
    const int node = ChildOf(merged[parent], proposal.tokens[i]);
    merged[i + 1] = static_cast<std::int16_t>(node);
    Agreement& agreement = nodes_[node].agreement;
    agreement.members |= AgreementRecord::Bit(member);
    agreement.rank = std::min(agreement.rank, rank);
    nodes_[node].wrong *= 1 - std::min(1.0, chances.At(agreement.depth, rank));
  }
}

PathMerge::Credits PathMerge::Compare(std::span<const Token> text, AgreementRecord* all,
                                      AgreementRecord* own) const {
  Credits credits{};
  int node = 0;
  for (const Token token : text) {
    int next = 0;
    for (int child = nodes_[node].first_child; child != 0; child = nodes_[child].sibling) {
      const bool right = nodes_[child].token == token;
      if (right) next = child;
      all->Add(nodes_[child].agreement, right);
      own->Add(nodes_[child].agreement, right);
    }
    if (next == 0) break;
    node = next;
    if (nodes_[node].kept) ++credits[std::countr_zero(nodes_[node].agreement.members)];
  }
  return credits;
}

void PathMerge::Best(const AgreementChances& chances, int max_depth, int max_nodes,
                     std::span<const double> prices, Proposal* tree) {
  order_.clear();
  for (int node = 1; node <= size(); ++node) {
    Node& at = nodes_[node];
    at.kept = false;
    at.reached = nodes_[at.parent].reached * chances.Of(at.agreement, 1 - at.wrong);
    if (at.agreement.depth <= max_depth) order_.push_back(static_cast<std::int16_t>(node));
  }
  // No child has a larger chance than its parent, which comes first where they are equal.
  std::ranges::sort(order_, [this](std::int16_t a, std::int16_t b) {
    if (nodes_[a].reached != nodes_[b].reached) return nodes_[a].reached > nodes_[b].reached;
    return a < b;
  });
  order_.resize(std::min(order_.size(), Size(std::max(max_nodes, 0))));
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
    Node& node = nodes_[order_[i]];
    node.kept = true;
    tree->Append(number_[node.parent], node.token);
    number_[order_[i]] = static_cast<std::int8_t>(tree->size());
  }
}

}  // namespace foretoken
