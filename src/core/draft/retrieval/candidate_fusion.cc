#include "core/draft/retrieval/candidate_fusion.h"

#include <algorithm>

namespace foretoken {
bool CandidateFusion::Later(const Candidate& a, const Candidate& b) {
  if (a.probability != b.probability) return a.probability < b.probability;
  if (a.depth != b.depth) return a.depth > b.depth;
  if (a.source != b.source) return a.source > b.source;
  return a.token > b.token;
}

// Appends the candidates, out of the heap's order. `factor` turns a child's frequency below its
// parent into its probability.
void CandidateFusion::AppendChildren(const CandidateSource& source, const Candidate& parent,
                                     double factor) {
  const auto append = [&](auto* tree) {
    const std::uint32_t all = tree->count(parent.node);
    tree->VisitChildren(parent.node, [&](std::uint32_t child, Token token, std::uint32_t count) {
      queue_.push_back({.probability = factor * count / all,
                        .depth = static_cast<std::int16_t>(parent.depth + 1),
                        .source = parent.source,
                        .token = token,
                        .node = child,
                        .parent = parent.parent});
    });
  };
  std::visit(append, source.tree);
}

void CandidateFusion::Fuse(std::span<const CandidateSource> sources, int most, Proposal* proposal,
                           std::span<const double> least) {
  proposal->Truncate(0);
  queue_.clear();
  scores_.clear();
  most = std::min(most, kMaxProposal);
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const Candidate root = {.source = static_cast<std::int16_t>(s), .node = sources[s].node};
    AppendChildren(sources[s], root, sources[s].scale);
  }
  std::ranges::make_heap(queue_, Later);
  while (!queue_.empty() && proposal->size() < most) {
    std::ranges::pop_heap(queue_, Later);
    Candidate best = queue_.back();
    queue_.pop_back();
    const auto i = std::min(scores_.size(), least.size() - 1);
    if (!least.empty() && best.probability < least[i]) return;
    // Where another source was first with the same token, its children go below the same node.
    const CandidateSource& source = sources[best.source];
    int node = proposal->ChildWith(best.parent, best.token);
    if (node == 0) {
      scores_.push_back({best.probability, source.kind});
      proposal->Append(best.parent, best.token);
      node = proposal->size();
    }
    best.parent = static_cast<std::int16_t>(node);
    std::size_t ordered = queue_.size();
    AppendChildren(source, best, best.probability * source.discount);
    while (ordered < queue_.size()) {
      ++ordered;
      std::push_heap(queue_.begin(), queue_.begin() + ordered, Later);
    }
  }
}

}  // namespace foretoken
