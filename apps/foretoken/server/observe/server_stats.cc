#include "apps/foretoken/server/observe/server_stats.h"

#include <algorithm>

namespace foretoken::server {

void DurationBuckets::Add(double seconds) {
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  ++counts[bucket];
  sum += seconds;
  ++count;
}

void RateWindow::Add(std::int64_t now_ns, std::int64_t count) {
  const std::int64_t slice = now_ns / kSliceNs;
  const std::int64_t stale = std::min<std::int64_t>(slice - newest_, kSlices);
  for (std::int64_t i = 0; i < stale; ++i) counts_[(slice - i) % kSlices] = 0;
  newest_ = std::max(newest_, slice);
  counts_[slice % kSlices] += count;
}

double RateWindow::PerSecond(std::int64_t now_ns) const {
  // The slice under way is left out: it is not full yet.
  const std::int64_t now = now_ns / kSliceNs;
  std::int64_t sum = 0;
  for (std::int64_t slice = now - kSlices + 1; slice < now; ++slice) {
    if (slice > newest_ - kSlices && slice <= newest_) sum += counts_[slice % kSlices];
  }
  return static_cast<double>(sum) * 1e9 / (kSliceNs * (kSlices - 1));
}

void StatsRecorder::AddRound(const RoundRecord& round) {
  ++totals_.modes[round.mode].rounds;
  const int lookahead = round.mode.drafts() ? round.lookahead : 0;
  ++totals_.planned_rounds[round.mode][lookahead];
  if (round.hit.has_value()) {
    ++totals_.lookups_at[round.accepted];
    if (*round.hit) ++totals_.hits_at[round.accepted];
  }
  if (round.proposed.empty()) return;
  ++totals_.drafts;
  totals_.draft_tokens += round.proposed.size();
  totals_.accepted_tokens += round.accepted;
  for (int i = 0; i < round.accepted; ++i) ++totals_.accepted_at[i];
}

void StatsRecorder::AddToken(Mode mode, TokenOrigin origin) {
  ++totals_.output_tokens;
  ++totals_.modes[mode].tokens;
  ++totals_.tokens_by_origin[static_cast<std::size_t>(origin)];
  ++unpublished_tokens_;
}

void StatsRecorder::AddFinished(Mode mode, FinishReason reason, const RequestStats& stats) {
  totals_.prompt_tokens += stats.prompt_tokens;
  totals_.cached_prompt_tokens += stats.cached_prompt_tokens;
  totals_.preemptions += stats.preemptions;
  totals_.lossy_tokens += stats.lossy;
  ++totals_.modes[mode].requests;
  if (reason == FinishReason::kCancelled || stats.first_token_ns == 0) return;
  const auto seconds = [](std::int64_t from, std::int64_t to) {
    return static_cast<double>(to - from) / 1e9;
  };
  totals_.time_to_first_token.Add(seconds(stats.submitted_ns, stats.first_token_ns));
  totals_.request_time.Add(seconds(stats.submitted_ns, stats.finished_ns));
  if (stats.output_tokens > 1) {
    totals_.time_per_output_token.Add(seconds(stats.first_token_ns, stats.finished_ns) /
                                      (stats.output_tokens - 1));
  }
}

void StatsRecorder::AddEngine(const Engine& engine) {
  const EngineStats& stats = engine.stats();
  totals_.kv = engine.kv_usage();
  totals_.recent_kv = engine.recent_kv_usage();
  totals_.running = engine.running();
  totals_.waiting = engine.waiting();
  totals_.passes = stats.passes;
  totals_.rows = stats.rows;
  totals_.target_seconds = static_cast<double>(stats.target.sum()) / 1e9;
  totals_.wait_seconds = static_cast<double>(stats.wait.sum()) / 1e9;
  totals_.host_seconds = static_cast<double>(stats.host.sum()) / 1e9;
}

void StatsRecorder::Publish(std::int64_t now_ns) {
  totals_.rate.Add(now_ns, unpublished_tokens_);
  unpublished_tokens_ = 0;
  const std::lock_guard lock(mutex_);
  published_ = totals_;
}

ServerTotals StatsRecorder::Published() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

}  // namespace foretoken::server
