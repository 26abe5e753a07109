#include "core/ssd/speculation_cache.h"

#include <algorithm>

#include "base/numbers/integers.h"

namespace foretoken {
namespace {

// Far above any fan-out in use; bounds what a misbehaving peer can make us store.
constexpr std::size_t kMaxBranches = 1024;

}  // namespace

std::size_t SpeculationCache::Find(Outcome outcome) const {
  const auto found = std::ranges::find(branches_, outcome, &Branch::outcome);
  return found - branches_.begin();
}

bool SpeculationCache::Append(std::uint32_t epoch, Outcome outcome, int index, int parent,
                              Token token, bool retrieved) {
  if (epoch != epoch_ || index < 1 || index > kMaxProposal) return false;
  const std::size_t at = Find(outcome);
  const int size = at == branches_.size() ? 0 : branches_[at].size;
  if (index != size + 1 || parent < 0 || parent > size) return false;
  if (at == branches_.size()) {
    if (at == kMaxBranches) return false;
    branches_.push_back({.outcome = outcome, .size = 0, .retrieved = retrieved});
  }
  ++branches_[at].size;
  nodes_.push_back({static_cast<std::int16_t>(at), static_cast<std::int8_t>(parent), token});
  return true;
}

bool SpeculationCache::SetDistribution(std::uint32_t epoch, Outcome outcome, int parent,
                                       std::span<const TokenProbability> distribution) {
  if (epoch != epoch_ || parent < 0 || parent > kMaxProposal) return false;
  const std::size_t at = Find(outcome);
  if (at == branches_.size()) return false;
  if (at >= distributions_.size()) distributions_.resize(at + 1);
  distributions_[at].SetListed(parent, distribution);
  return true;
}

const CacheAnswer& SpeculationCache::Lookup(Outcome outcome) {
  answer_.outcome = outcome;
  answer_.any = !branches_.empty();
  answer_.proposal.Clear();
  const std::size_t at = Find(outcome);
  answer_.hit = at != branches_.size();
  answer_.retrieved = answer_.hit && branches_[at].retrieved;
  answer_.distributions = nullptr;
  answer_.rank = 0;
  if (!answer_.hit) return answer_;
  static const DraftDistributions kNone;
  answer_.distributions = at < distributions_.size() ? &distributions_[at] : &kNone;
  answer_.rank = static_cast<int>(
      std::count_if(branches_.begin(), branches_.begin() + at,
                    [&](const Branch& other) { return other.outcome.node == outcome.node; }));
  answer_.proposal.source = ProposalSource::kCache;
  for (const Node& node : nodes_) {
    if (node.branch == Int(at)) answer_.proposal.Append(node.parent, node.token);
  }
  return answer_;
}

void SpeculationCache::BonusesAt(int node, std::vector<Token>* bonuses) const {
  bonuses->clear();
  for (const Branch& branch : branches_) {
    if (branch.outcome.node == node) bonuses->push_back(branch.outcome.bonus);
  }
}

}  // namespace foretoken
