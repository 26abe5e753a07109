#include "ssd/retrieved_outcomes.h"

#include <algorithm>

namespace foretoken {

OutcomeList OutcomesBeside(const Proposal& proposal, const Proposal& retrieved) {
  OutcomeList outcomes;
  std::array<int, kMaxProposal + 1> node_of{};  // Retrieved node to the proposal's; -1: none.
  std::array<int, kMaxProposal + 1> named{};    // By the proposal's node.
  for (int i = 0; i < retrieved.size(); ++i) {
    const int parent = node_of[retrieved.parents[i]];
    const int child = parent < 0 ? 0 : proposal.ChildWith(parent, retrieved.tokens[i]);
    node_of[i + 1] = child == 0 ? -1 : child;
    if (parent < 0 || child != 0 || outcomes.size() == outcomes.capacity()) continue;
    if (named[parent]++ < kMaxRetrievedPerNode) {
      outcomes.push_back({.node = parent, .bonus = retrieved.tokens[i]});
    }
  }
  return outcomes;
}

void RetrievedOutcomes::Assign(std::span<const Outcome> outcomes) {
  Clear();
  for (const Outcome& outcome : outcomes) expected_.push_back({outcome, -1});
}

StaticVector<Token, kMaxRetrievedPerNode> RetrievedOutcomes::Beside(
    int node, std::span<const Token> candidates) {
  StaticVector<Token, kMaxRetrievedPerNode> tokens;
  for (Expected& expected : expected_) {
    if (expected.outcome.node != node || tokens.size() == tokens.capacity()) continue;
    if (std::ranges::find(candidates, expected.outcome.bonus) != candidates.end()) continue;
    expected.rank = static_cast<int>(tokens.size());
    tokens.push_back(expected.outcome.bonus);
  }
  return tokens;
}

void RetrievedOutcomes::Observe(int node, Token token) {
  constexpr double kDecay = 0.95;  // As the OutcomePredictor's.
  for (const Expected& expected : expected_) {
    if (expected.outcome.node != node || expected.rank < 0) continue;
    double& probability = probability_[static_cast<std::size_t>(expected.rank)];
    const double right = expected.outcome.bonus == token ? 1 : 0;
    probability = kDecay * probability + (1 - kDecay) * right;
  }
}

}  // namespace foretoken
