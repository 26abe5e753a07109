#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "foretoken/engine.h"
#include "foretoken/request.h"

namespace foretoken::server {

/// Counts of durations in the buckets that Prometheus shows.
class DurationBuckets {
 public:
  static constexpr std::array<double, 14> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,  0.5,    1,     2.5,  5,     10,   60};
  void Add(double seconds);

  std::array<std::int64_t, kBounds.size() + 1> counts{};  ///< The last one is above all bounds.
  double sum = 0;
  std::int64_t count = 0;
};

/// Tokens per second over the last few seconds, from slices of a tenth of a second.
class RateWindow {
 public:
  void Add(std::int64_t now_ns, std::int64_t count);
  double PerSecond(std::int64_t now_ns) const;

 private:
  static constexpr std::int64_t kSliceNs = 100'000'000;
  static constexpr int kSlices = 30;
  std::array<std::int64_t, kSlices> counts_{};
  std::int64_t newest_ = 0;  // Slice number of the latest entry.
};

/// All that the engine's thread has counted since it began.
struct ServerTotals {
  struct OfMode {
    std::int64_t requests = 0;  ///< Finished choices.
    std::int64_t rounds = 0;
    std::int64_t tokens = 0;
  };
  ByMode<OfMode> modes{};
  /// Rounds by the mode and the lookahead K of their plan: in mode auto, what the planner chose.
  ByMode<std::array<std::int64_t, kMaxProposal + 1>> planned_rounds{};
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_prompt_tokens = 0;
  std::int64_t output_tokens = 0;
  std::array<std::int64_t, 3> tokens_by_origin{};  ///< By TokenOrigin.
  std::int64_t preemptions = 0;

  std::int64_t drafts = 0;  ///< Rounds that verified a proposal.
  std::int64_t draft_tokens = 0;
  std::int64_t accepted_tokens = 0;
  /// Tokens of finished choices that were accepted by a lossy rule only.
  std::int64_t lossy_tokens = 0;
  /// Rounds in which `i + 1` tokens of the proposal, or more, were accepted.
  std::array<std::int64_t, kMaxProposal> accepted_at{};
  /// Speculation-cache lookups, and hits, after k accepted tokens.
  std::array<std::int64_t, kMaxProposal + 1> lookups_at{};
  std::array<std::int64_t, kMaxProposal + 1> hits_at{};

  DurationBuckets time_to_first_token;
  DurationBuckets time_per_output_token;
  DurationBuckets request_time;
  RateWindow rate;

  // The engine's, as it stood after its last step.
  KvUsage kv;
  KvUsage recent_kv;
  int running = 0;
  int waiting = 0;
  std::int64_t passes = 0;
  std::int64_t rows = 0;
  double target_seconds = 0;  ///< The time of decoding rounds in target passes.
  /// The time of decoding rounds in which the target waits for proposals.
  double wait_seconds = 0;
  double host_seconds = 0;  ///< The rest of decoding rounds' time.
};

/// Counts on the engine's thread without locks, and publishes copies. The engine's thread calls
/// all but Published.
class StatsRecorder {
 public:
  void AddRound(const RoundRecord& round);
  void AddToken(Mode mode, TokenOrigin origin);
  void AddFinished(Mode mode, FinishReason reason, const RequestStats& stats);
  void AddEngine(const Engine& engine);
  void Publish(std::int64_t now_ns);

  /// Any thread: as of the last Publish.
  ServerTotals Published() const;

 private:
  ServerTotals totals_;
  std::int64_t unpublished_tokens_ = 0;

  mutable std::mutex mutex_;
  ServerTotals published_;
};

}  // namespace foretoken::server
