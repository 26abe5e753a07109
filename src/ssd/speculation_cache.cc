#include "ssd/speculation_cache.h"

namespace foretoken {
namespace {

// Far above any fan-out in use; bounds what a misbehaving peer can make us store.
constexpr std::size_t kMaxBranches = 1024;

}  // namespace

bool SpeculationCache::Append(std::uint32_t epoch, int branch, Outcome outcome, Token token) {
  if (epoch != epoch_ || branch < 0) return false;
  const auto index = static_cast<std::size_t>(branch);
  if (index > branches_.size() || index >= kMaxBranches) return false;
  if (index == branches_.size()) branches_.push_back({.outcome = outcome, .chain = {}});
  PreparedBranch& prepared = branches_[index];
  if (prepared.outcome != outcome || prepared.chain.size() == kMaxProposal) return false;
  prepared.chain.push_back(token);
  return true;
}

const PreparedBranch* SpeculationCache::Lookup(Outcome outcome) const {
  for (const PreparedBranch& branch : branches_) {
    if (branch.outcome == outcome) return &branch;
  }
  return nullptr;
}

}  // namespace foretoken
