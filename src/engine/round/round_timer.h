#pragma once

#include <cstdint>

#include "engine/round/round.h"
#include "foretoken/stats.h"

namespace foretoken {

/// Splits the time between passes, and keeps the engine's statistics.
class RoundTimer {
 public:
  /// What follows is idle time, not a gap between rounds.
  void Idle() { last_pass_end_ = 0; }

  /// Sets the round's times from those of its pass; its `wait_ns` is known.
  void RecordPass(std::int64_t pass_start, std::int64_t pass_end, Round* round);
  /// Once the pass's outcomes are verified and looked up.
  void RecordOutcomes(const Round& round);
  void RecordDraft(const DraftPasses& news) { stats_.draft += news; }

  const EngineStats& stats() const { return stats_; }
  void ResetStats() { stats_ = EngineStats{}; }

 private:
  EngineStats stats_;
  std::int64_t last_pass_end_ = 0;  // 0: the engine was idle.
  bool last_round_all_hit_ = false;
};

}  // namespace foretoken
