#include "core/speculation/plan.h"

#include "base/check.h"

namespace foretoken {
int FanoutAt(const FanoutShape& shape, const Proposal& proposal, int node) {
  const int K = std::ssize(shape.at) - 1;
  const int length = proposal.IsChain() ? std::min(proposal.size(), K) : K;
  const bool leaf = proposal.FirstChild(node) == 0;
  return shape.At(leaf ? length : std::min(proposal.Depth(node), K), length);
}

FanoutShape UniformFanout(int fanout, int lookahead) {
  FT_CHECK(fanout >= 0 && fanout <= kMaxFanout, "fan-out {}", fanout);
  FT_CHECK(lookahead >= 0 && lookahead <= kMaxProposal, "lookahead {}", lookahead);
  FanoutShape shape;
  for (int k = 0; k <= lookahead; ++k) shape.at.push_back(static_cast<std::uint8_t>(fanout));
  return shape;
}

FanoutShape EvenFanout(int budget, int lookahead) {
  FT_CHECK(budget >= 0, "cache budget {}", budget);
  const int nodes = lookahead + 1;
  FanoutShape shape = UniformFanout(std::min(budget / nodes, kMaxFanout), lookahead);
  for (int k = 0; k < budget % nodes && shape.at[k] < kMaxFanout; ++k) ++shape.at[k];
  shape.spends_budget = true;
  return shape;
}

}  // namespace foretoken
