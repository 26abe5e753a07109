#include "core/engine/scheduler.h"

#include <algorithm>

namespace foretoken {
namespace {

// A sequence without a group is a group of its own, apart from all that have a name.
std::uint64_t GroupOf(const Sequence& sequence) {
  constexpr std::uint64_t kOwn = std::uint64_t{1} << 63;
  return sequence.request.group != 0 ? sequence.request.group : kOwn | sequence.id;
}

}  // namespace

Scheduler::Scheduler(const KvRoom& room, bool prefix_cache, int max_batch)
    : kv_(room, prefix_cache), max_batch_(max_batch) {
  running_.reserve(max_batch);
}

int Scheduler::RunningOf(std::uint64_t group) const {
  return std::ranges::count_if(running_, [group](const auto& s) { return GroupOf(*s) == group; });
}

std::pair<std::size_t, int> Scheduler::Next() const {
  std::pair<std::size_t, int> best = {0, max_batch_ + 1};
  for (std::size_t i = 0; i < waiting_.size() && best.second > 0; ++i) {
    const int running = RunningOf(GroupOf(*waiting_[i]));
    if (running < best.second) best = {i, running};
  }
  return best;
}

bool Scheduler::MakeWay() {
  if (waiting_.empty() || std::ssize(running_) < max_batch_) return false;
  if (Next().second > 0) return false;
  int most = 2;
  auto victim = running_.end();
  for (auto place = running_.begin(); place != running_.end(); ++place) {
    const int members = RunningOf(GroupOf(**place));
    if (members < most) continue;
    most = members;
    victim = place;
  }
  if (victim == running_.end()) return false;
  Preempt(victim);
  return true;
}

std::span<const std::unique_ptr<Sequence>> Scheduler::Admit() {
  const std::size_t before = running_.size();
  while (!waiting_.empty() && std::ssize(running_) < max_batch_) {
    const auto place = waiting_.begin() + Next().first;
    Sequence& next = **place;
    // Room for everything it has to compute and one more block, so that it can take at least a few
    // steps before anybody is preempted; a lone sequence may always try.
    const auto blocks = std::ssize(next.tokens) / kBlockSize + 2;
    if (!running_.empty() && !kv_.HasRoomFor(blocks)) break;
    const std::int32_t cached = next.needs_all_rows() ? 0 : kv_.MatchPrefix(next.tokens, &next.kv);
    if (!next.admitted_before) next.stats.cached_prompt_tokens = cached;
    next.admitted_before = true;
    running_.push_back(std::move(*place));
    waiting_.erase(place);
  }
  return std::span(running_).subspan(before);
}

bool Scheduler::Reserve(Sequence* sequence, std::int32_t length) {
  while (!kv_.Reserve(length, &sequence->kv)) {
    if (TakeFromGuests()) continue;
    const bool itself = running_.back().get() == sequence;
    FT_CHECK(!itself || running_.size() > 1, "the KV pool is too small for one sequence");
    PreemptYoungest();
    if (itself) return false;
  }
  return true;
}

bool Scheduler::TakeFromGuests() {
  bool taken = false;
  for (SequenceKv* guest : guests_) {
    taken = taken || !guest->blocks.empty();
    kv_.Release(guest);
  }
  return taken;
}

void Scheduler::RemoveGuest(SequenceKv* guest) {
  kv_.Release(guest);
  std::erase(guests_, guest);
}

void Scheduler::Preempt(Place place) {
  Sequence& victim = **place;
  kv_.Release(&victim.kv);
  victim.in_pass = false;
  victim.proposal.Clear();
  victim.awaits_jit = false;
  ++victim.stats.preemptions;
  waiting_.push_front(std::move(*place));
  running_.erase(place);
}

std::unique_ptr<Sequence> Scheduler::Remove(Sequence* sequence) {
  const auto take_from = [sequence](auto* sequences) -> std::unique_ptr<Sequence> {
    const auto found = std::ranges::find(*sequences, sequence, &std::unique_ptr<Sequence>::get);
    if (found == sequences->end()) return nullptr;
    auto removed = std::move(*found);
    sequences->erase(found);
    return removed;
  };
  if (auto removed = take_from(&running_)) {
    kv_.Release(&removed->kv);
    return removed;
  }
  auto removed = take_from(&waiting_);
  FT_CHECK(removed != nullptr);
  return removed;
}

}  // namespace foretoken
