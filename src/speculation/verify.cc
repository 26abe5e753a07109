#include "speculation/verify.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {

StaticVector<std::int8_t, kMaxProposal> PathTo(const Proposal& proposal, int node) {
  FT_CHECK(node >= 0 && node <= proposal.size(), "node {} of {}", node, proposal.size());
  StaticVector<std::int8_t, kMaxProposal> path;
  for (; node != 0; node = proposal.parents[node - 1]) {
    path.push_back(static_cast<std::int8_t>(node));
  }
  std::reverse(path.begin(), path.end());
  return path;
}

StaticVector<Token, kMaxProposal> PathTokens(const Proposal& proposal, int node) {
  StaticVector<Token, kMaxProposal> tokens;
  for (const std::int8_t step : PathTo(proposal, node)) tokens.push_back(proposal.tokens[step - 1]);
  return tokens;
}

}  // namespace foretoken
