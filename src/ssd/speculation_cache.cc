#include "ssd/speculation_cache.h"

#include <algorithm>

namespace foretoken {
namespace {

// Far above any fan-out in use; bounds what a misbehaving peer can make us store.
constexpr std::size_t kMaxBranches = 1024;

}  // namespace

bool SpeculationCache::Append(std::uint32_t epoch, Outcome outcome, int index, int parent,
                              Token token, bool retrieved) {
  if (epoch != epoch_ || index < 1 || index > kMaxProposal) return false;
  const auto at = static_cast<std::size_t>(std::find(outcomes_.begin(), outcomes_.end(), outcome) -
                                           outcomes_.begin());
  const int size = at == outcomes_.size() ? 0 : branches_[at].proposal.size();
  if (index != size + 1 || parent < 0 || parent > size) return false;
  if (at == outcomes_.size()) {
    if (at == kMaxBranches) return false;
    outcomes_.push_back(outcome);
    branches_.push_back({.outcome = outcome, .proposal = {}, .retrieved = retrieved});
    branches_.back().proposal.source = ProposalSource::kCache;
  }
  branches_[at].proposal.Append(parent, token);
  return true;
}

bool SpeculationCache::SetLaw(std::uint32_t epoch, Outcome outcome, int parent,
                              std::span<const TokenProbability> law) {
  if (epoch != epoch_ || parent < 0 || parent > kMaxProposal) return false;
  const auto at = static_cast<std::size_t>(std::find(outcomes_.begin(), outcomes_.end(), outcome) -
                                           outcomes_.begin());
  if (at == outcomes_.size()) return false;
  if (at >= laws_.size()) laws_.resize(at + 1);
  laws_[at].SetListed(parent, law);
  return true;
}

const ProposalLaws& SpeculationCache::LawsOf(const PreparedBranch& branch) const {
  static const ProposalLaws kNone;
  const auto at = static_cast<std::size_t>(&branch - branches_.data());
  return at < laws_.size() ? laws_[at] : kNone;
}

const PreparedBranch* SpeculationCache::Lookup(Outcome outcome) const {
  const auto found = std::find(outcomes_.begin(), outcomes_.end(), outcome);
  return found == outcomes_.end() ? nullptr : &branches_[found - outcomes_.begin()];
}

int SpeculationCache::RankOf(Outcome outcome) const {
  const auto end = std::find(outcomes_.begin(), outcomes_.end(), outcome);
  return static_cast<int>(std::count_if(
      outcomes_.begin(), end, [&](const Outcome& other) { return other.node == outcome.node; }));
}

}  // namespace foretoken
