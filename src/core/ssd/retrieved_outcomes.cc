#include "core/ssd/retrieved_outcomes.h"

#include <array>

namespace foretoken {

OutcomeList OutcomesBeside(const Proposal& proposal, const Proposal& retrieved,
                           std::span<const CandidateScore> scores) {
  OutcomeList outcomes;
  std::array<int, kMaxProposal + 1> node_of{};  // Retrieved node to the proposal's; -1: none.
  std::array<int, kMaxProposal + 1> named{};    // By the proposal's node.
  for (int i = 0; i < retrieved.size(); ++i) {
    const int above = retrieved.parents[i];
    const int parent = node_of[above];
    const int child = parent < 0 ? 0 : proposal.ChildWith(parent, retrieved.tokens[i]);
    node_of[i + 1] = child == 0 ? -1 : child;
    if (parent < 0 || child != 0 || outcomes.size() == outcomes.capacity()) continue;
    if (++named[parent] > kMaxRetrievedPerNode) continue;
    const double reached = above == 0 ? 1 : scores[above - 1].probability;
    const double score = scores[i].probability / reached;
    outcomes.push_back({{.node = parent, .bonus = retrieved.tokens[i]}, static_cast<float>(score)});
  }
  return outcomes;
}

void RetrievedOutcomes::Assign(std::span<const RetrievedOutcome> outcomes) {
  Clear();
  for (const RetrievedOutcome& outcome : outcomes) expected_.push_back({outcome, false});
}

StaticVector<RetrievedOutcomes::Candidate, kMaxRetrievedPerNode> RetrievedOutcomes::Beside(
    int node, bool leaf, std::span<const Token> candidates, const RetrievalRates& rates) {
  StaticVector<Candidate, kMaxRetrievedPerNode> found;
  for (Expected& expected : expected_) {
    const auto& [outcome, score] = expected.retrieved;
    if (outcome.node != node || found.size() == found.capacity()) continue;
    if (std::ranges::find(candidates, outcome.bonus) != candidates.end()) continue;
    expected.asked = true;
    found.push_back({outcome.bonus, rates.Chance(leaf, score)});
  }
  std::ranges::stable_sort(
      found, [](const Candidate& a, const Candidate& b) { return a.chance > b.chance; });
  return found;
}

void RetrievedOutcomes::Observe(int node, bool leaf, Token token, RetrievalRates* rates) const {
  for (const Expected& expected : expected_) {
    const auto& [outcome, score] = expected.retrieved;
    if (outcome.node != node || !expected.asked) continue;
    rates->Observe(leaf, score, outcome.bonus == token);
  }
}

}  // namespace foretoken
