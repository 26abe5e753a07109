#include "engine/scheduler.h"

#include <algorithm>

namespace foretoken {

Scheduler::Scheduler(std::int64_t kv_blocks, bool prefix_cache, int max_batch)
    : kv_(kv_blocks, prefix_cache), max_batch_(max_batch) {
  running_.reserve(max_batch);
}

std::span<const std::unique_ptr<Sequence>> Scheduler::Admit() {
  const std::size_t before = running_.size();
  while (!waiting_.empty() && static_cast<int>(running_.size()) < max_batch_) {
    Sequence& next = *waiting_.front();
    // Room for everything it has to compute and one more block, so that it can take at least a few
    // steps before anybody is preempted; a lone sequence may always try.
    const auto blocks = static_cast<std::int64_t>(next.tokens.size()) / kBlockSize + 2;
    if (!running_.empty() && kv_.Available() < blocks) break;
    const std::int32_t cached = kv_.MatchPrefix(next.tokens, &next.kv);
    if (!next.admitted_before) next.stats.cached_prompt_tokens = cached;
    next.admitted_before = true;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return std::span(running_).subspan(before);
}

bool Scheduler::Reserve(Sequence* sequence, std::int32_t length) {
  while (!kv_.Reserve(length, &sequence->kv)) {
    const bool itself = running_.back().get() == sequence;
    FT_CHECK(!itself || running_.size() > 1, "the KV pool is too small for one sequence");
    PreemptYoungest();
    if (itself) return false;
  }
  return true;
}

void Scheduler::PreemptYoungest() {
  if (running_.empty()) return;
  Sequence& victim = *running_.back();
  kv_.Release(&victim.kv);
  victim.in_pass = false;
  victim.proposal.Clear();
  victim.awaits_jit = false;
  ++victim.stats.preemptions;
  waiting_.push_front(std::move(running_.back()));
  running_.pop_back();
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
