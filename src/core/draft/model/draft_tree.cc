#include "core/draft/model/draft_tree.h"

#include <algorithm>

#include "base/numbers/integers.h"

namespace foretoken {
namespace {

// A row of the draft is worth while if its best child may be expected to have at least this share
// of the cutoff. (Of 1, 0.5, 0.25 and 0.1 on the bundled pair smaller ones give a few more tokens a
// pass, 0.7 % at most from 0.5 on with 15 nodes or 31, for drafting that takes longer.)
constexpr double kWorthwhile = 0.5;

// A row of the target's pass costs some part of a token even where it is cheap: what is accepted
// less often than this, by the draft's own confidence, is not worth one.
constexpr double kLeastChance = 0.05;

}  // namespace

void DraftTree::Clear() {
  proposal_.Clear();
  nodes_.clear();
  nodes_.push_back({});
}

void DraftTree::Assign(const Proposal& proposal) {
  proposal_ = proposal;
  nodes_.clear();
  for (int node = 0; node <= proposal.size(); ++node) nodes_.push_back({.open = false});
}

bool DraftTree::Wants(int node, const TreeShape& shape) const {
  const Node& at = nodes_[node];
  return !ranked(node) && at.open && (at.shape_node < 0 || shape.nodes[at.shape_node].inner);
}

void DraftTree::Expect(int node, double chance) {
  nodes_[node].first = static_cast<float>(chance);
  if (nodes_[node].reached * chance < kLeastChance) Close(node);
}

// Where the draft says how likely the first child is, the others share what is left.
double DraftTree::ReachedChild(int node, int rank, const TreeShape& shape, int child) const {
  const double average = shape.nodes[child].reached;
  const Node& parent = nodes_[node];
  if (parent.first < 0) return average;
  if (rank == 0) return parent.reached * parent.first;
  const double share = average / shape.nodes[parent.shape_node].reached;
  return parent.reached * std::min(share, 1.0 - parent.first);
}

int DraftTree::Grow(int node, int row, const TreeShape& shape, const Ranking& ranking) {
  SetRow(node, row);
  if (!nodes_[node].open) return 0;
  const int before = proposal_.size();
  const int at = nodes_[node].shape_node;
  // Siblings come by rank in the shape, so they do here.
  for (std::size_t i = at + 1; i < shape.nodes.size(); ++i) {
    const TreeShape::Node& child = shape.nodes[i];
    if (child.parent != at || child.rank >= std::ssize(ranking)) continue;
    proposal_.Append(node, ranking[child.rank].token);
    nodes_.push_back(
        {.shape_node = static_cast<std::int8_t>(i),
         .rank = child.rank,
         .reached = static_cast<float>(ReachedChild(node, child.rank, shape, Int(i)))});
  }
  return proposal_.size() - before;
}

void DraftTree::AddCandidate(const Candidate& candidate, Token token, const BestFirst& rule) {
  proposal_.Append(candidate.parent, token);
  nodes_.push_back({.shape_node = -1,
                    .rank = candidate.rank,
                    .open = candidate.reached * rule.first >= kWorthwhile * rule.cutoff &&
                            proposal_.Depth(proposal_.size()) < rule.depth,
                    .reached = static_cast<float>(candidate.reached)});
}

DraftTree::Candidates DraftTree::Best(const BestFirst& rule,
                                      std::span<const Ranking> rankings) const {
  std::array<std::array<std::int8_t, kMaxTreeWidth>, kMaxProposal + 1> children{};
  for (int node = 1; node < nodes(); ++node) {
    children[proposal_.parents[node - 1]][nodes_[node].rank] = static_cast<std::int8_t>(node);
  }
  // After each node that is in, the best candidate that is not.
  struct Next {
    Candidate candidate;
    StaticVector<double, kMaxTreeWidth> chances;
  };
  StaticVector<Next, kMaxProposal + 1> open;
  const auto take_next = [&](Next* next, int rank) {
    Candidate& candidate = next->candidate;
    candidate.rank = static_cast<std::int8_t>(rank);
    candidate.reached = -1;
    if (rank >= std::ssize(next->chances)) return;
    candidate.node = children[candidate.parent][rank];
    candidate.reached = nodes_[candidate.parent].reached * next->chances[rank];
  };
  const auto open_node = [&](int node) {
    // What carries a stop token has no children even where it is ranked.
    if (!ranked(node) || !nodes_[node].open) return;
    Next next{.candidate = {.parent = static_cast<std::int8_t>(node)},
              .chances = ChancesOf(*rule.chances, rankings[row(node)], rule.width)};
    take_next(&next, 0);
    open.push_back(next);
  };
  Candidates best;
  if (rule.depth > 0) open_node(0);
  while (!open.empty() && std::ssize(best) < rule.max_nodes) {
    Next* likeliest = std::max_element(open.begin(), open.end(), [](const Next& a, const Next& b) {
      return a.candidate.reached < b.candidate.reached;
    });
    const Candidate candidate = likeliest->candidate;
    if (candidate.reached < 0) break;
    best.push_back(candidate);
    take_next(likeliest, candidate.rank + 1);
    if (candidate.node != 0) open_node(candidate.node);
  }
  return best;
}

StaticVector<std::int8_t, kMaxProposal + 1> DraftTree::KeepBest(const BestFirst& rule,
                                                                std::span<const Ranking> rankings) {
  const Candidates best = Best(rule, rankings);
  StaticVector<std::int8_t, kMaxProposal + 1> origins;
  origins.push_back(0);
  // The number of each ranked node in the new tree.
  std::array<std::int8_t, kMaxProposal + 1> number{};
  const DraftTree old = *this;
  proposal_.Clear();
  nodes_.resize(1);
  const auto keep = [&](const Candidate& candidate) {
    const int origin = candidate.node;
    const Token token = rankings[old.row(candidate.parent)][candidate.rank].token;
    const auto parent = number[candidate.parent];
    if (origin == 0) {
      AddCandidate({.parent = parent, .rank = candidate.rank, .reached = candidate.reached}, token,
                   rule);
    } else {
      proposal_.Append(parent, token);
      nodes_.push_back(old.nodes_[origin]);
      number[origin] = static_cast<std::int8_t>(proposal_.size());
    }
    origins.push_back(static_cast<std::int8_t>(origin));
  };
  // By their old numbers, so that what moves moves towards the root.
  std::array<const Candidate*, kMaxProposal + 1> kept{};
  for (const Candidate& candidate : best) {
    if (candidate.node != 0 && old.ranked(candidate.node)) kept[candidate.node] = &candidate;
  }
  for (const Candidate* candidate : kept) {
    if (candidate != nullptr) keep(*candidate);
  }
  for (const Candidate& candidate : best) {
    if (candidate.node == 0 || !old.ranked(candidate.node)) keep(candidate);
  }
  // Once there is no room, a row is worth while only if its best child would push another out.
  if (std::ssize(best) == rule.max_nodes) {
    for (int node = 1; node < nodes(); ++node) {
      if (!ranked(node) && nodes_[node].reached * rule.first < best.back().reached) Close(node);
    }
  }
  return origins;
}

}  // namespace foretoken
