#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/engine/sequence.h"
#include "foretoken/stats.h"

namespace foretoken {

/// The sequences that are decoded together, oldest first.
using RunningSet = std::vector<std::unique_ptr<Sequence>>;

/// What the parts of a round hand to each other, besides what each sequence holds of its own: who
/// shares the target's pass, and how long things took. One object serves all rounds.
struct Round {
  std::vector<Sequence*> pass;  ///< The sequences of the target's pass, oldest first.
  int rows = 0;                 ///< The rows of the target's pass.
  bool prefills = false;        ///< Some sequence computes other tokens than its last one.
  bool disturbed = false;       ///< Other programs held the pass up: its time teaches nothing.

  std::int64_t wait_ns = 0;    ///< For proposals, before the pass.
  std::int64_t choose_ns = 0;  ///< Noise and choice of all visited rows.
  std::int64_t pass_ns = 0;
  std::int64_t gap_ns = 0;  ///< From the pass before to this one; negative: the engine was idle.
  std::int64_t all_ns = 0;  ///< Since the end of the pass before.
};

/// Tokens that all sequences of the round emitted.
inline int EmittedTokens(const Round& round) {
  int tokens = 0;
  for (const Sequence* sequence : round.pass) tokens += sequence->emitted.size();
  return tokens;
}

inline double Microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

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
