#include "ssd/speculation_cache.h"

#include <algorithm>

namespace foretoken {
namespace {

// Far above any fan-out in use; bounds what a misbehaving peer can make us store.
constexpr std::size_t kMaxBranches = 1024;

}  // namespace

bool SpeculationCache::Append(std::uint32_t epoch, Outcome outcome, int index, int parent,
                              Token token) {
  if (epoch != epoch_ || index < 1 || index > kMaxProposal) return false;
  const auto at = static_cast<std::size_t>(std::find(outcomes_.begin(), outcomes_.end(), outcome) -
                                           outcomes_.begin());
  const int size = at == outcomes_.size() ? 0 : branches_[at].proposal.size();
  if (index != size + 1 || parent < 0 || parent > size) return false;
  if (at == outcomes_.size()) {
    if (at == kMaxBranches) return false;
    outcomes_.push_back(outcome);
    branches_.push_back({.outcome = outcome, .proposal = {}});
    branches_.back().proposal.source = ProposalSource::kCache;
  }
  branches_[at].proposal.Append(parent, token);
  return true;
}

const PreparedBranch* SpeculationCache::Lookup(Outcome outcome) const {
  const auto found = std::find(outcomes_.begin(), outcomes_.end(), outcome);
  return found == outcomes_.end() ? nullptr : &branches_[found - outcomes_.begin()];
}

}  // namespace foretoken
