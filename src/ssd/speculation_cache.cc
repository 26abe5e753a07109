#include "ssd/speculation_cache.h"

#include <algorithm>

namespace foretoken {
namespace {

// Far above any fan-out in use; bounds what a misbehaving peer can make us store.
constexpr std::size_t kMaxBranches = 1024;

}  // namespace

bool SpeculationCache::Append(std::uint32_t epoch, Outcome outcome, Token token) {
  if (epoch != epoch_) return false;
  auto branch = std::find_if(branches_.begin(), branches_.end(),
                             [&](const auto& candidate) { return candidate.outcome == outcome; });
  if (branch == branches_.end()) {
    if (branches_.size() == kMaxBranches) return false;
    branch = branches_.insert(branch, {.outcome = outcome, .chain = {}});
  }
  if (branch->chain.size() == kMaxProposal) return false;
  branch->chain.push_back(token);
  return true;
}

const PreparedBranch* SpeculationCache::Lookup(Outcome outcome) const {
  for (const PreparedBranch& branch : branches_) {
    if (branch.outcome == outcome) return &branch;
  }
  return nullptr;
}

}  // namespace foretoken
