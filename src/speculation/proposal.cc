#include "speculation/proposal.h"

#include <array>

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
  std::array<std::int8_t, kMaxProposal + 1> kept{};  // The node's new number; -1: dropped.
  std::array<std::int8_t, kMaxProposal + 1> depth{};
  int count = 0;
  for (int i = 0; i < size(); ++i) {
    const int parent = parents[i];
    depth[i + 1] = static_cast<std::int8_t>(depth[parent] + 1);
    kept[i + 1] = -1;
    if (kept[parent] < 0 || depth[i + 1] > max_depth || count >= max_nodes) continue;
    parents[count] = kept[parent];
    tokens[count] = tokens[i];
    kept[i + 1] = static_cast<std::int8_t>(++count);
  }
  tokens.resize(count);
  parents.resize(count);
}

}  // namespace foretoken
