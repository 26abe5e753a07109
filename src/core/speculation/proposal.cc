#include "core/speculation/proposal.h"

#include "base/check.h"

namespace foretoken {

bool Proposal::IsChain() const {
  for (int i = 0; i < size(); ++i) {
    if (parents[i] != i) return false;
  }
  return true;
}

int Proposal::ChildWith(int node, Token token) const {
  // Children come after their parent.
  for (int i = node; i < size(); ++i) {
    if (parents[i] == node && tokens[i] == token) return i + 1;
  }
  return 0;
}

int Proposal::FirstChild(int node) const {
  for (int i = node; i < size(); ++i) {
    if (parents[i] == node) return i + 1;
  }
  return 0;
}

int Proposal::Depth(int node) const {
  int depth = 0;
  for (; node != 0; node = parents[node - 1]) ++depth;
  return depth;
}

void Proposal::Prune(int max_depth, int max_nodes) {
  std::array<std::int8_t, kMaxProposal + 1> depth{};
  int count = 0;
  KeepIf([&](int node, int parent) {
    depth[node] = static_cast<std::int8_t>(depth[parent] + 1);
    return depth[node] <= max_depth && count++ < max_nodes;
  });
}

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
