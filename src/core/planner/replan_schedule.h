#pragma once

#include <cstdint>
#include <optional>

#include "core/planner/observations.h"
#include "core/prediction/predict.h"
#include "core/speculation/plan.h"

namespace foretoken {

/// Batches of 1, 2, 3 to 4, 5 to 8 ... sequences, 129 and more.
inline constexpr int kBatchLevels = 9;
int BatchLevel(const Workload& load);

/// The decoding time so far, and the times at which sequences are planned anew: replanning may take
/// a small share of the time. When a replan is due, every sequence of the round is planned anew:
/// they share passes, so that a mode pays or not for all of them, and only rounds of one mode teach
/// how fast it is. The first sequence that is planned in a round leads, the others follow.
class ReplanSchedule {
 public:
  /// A round is over.
  void Advance(double us) { now_us_ += us; }
  double now_us() const { return now_us_; }

  /// Whether to plan a sequence anew now. `last`: chosen last for a batch of this size.
  bool Due(const SpeculationPlan& current, const std::optional<SpeculationPlan>& last,
           const Workload& load, const SequenceEstimate& sequence);
  /// A replan took so long.
  void Took(double us);
  /// A new sequence needs no early replans once earlier ones had enough. (Most replans come early,
  /// and at the first sequences' begin: a wrong mode costs more than they do.)
  void Begin(SequenceEstimate* sequence) const;

  /// In this round; or the batch has just come to another size, and what was chosen for it counts.
  bool follows() const { return now_us_ == level_us_ || now_us_ == led_us_; }
  void Lead() { led_us_ = now_us_; }
  /// All sequences of this round take rows of which it is to be seen how long they take.
  bool explores() const { return now_us_ == explored_us_; }
  void Explore() { explored_us_ = now_us_; }

  std::int64_t replans() const { return replans_; }
  /// The time of a replan, in the mean.
  double mean_us() const { return replans_ > 0 ? us_ / static_cast<double>(replans_) : 0; }

 private:
  double now_us_ = 0;
  double next_replan_us_ = 0;
  // When a replan was due; the first sequence of a round was planned; the batch came to its level;
  // rows were chosen to see how long they take.
  double due_us_ = -1;
  double led_us_ = -1;
  double level_us_ = -1;
  double explored_us_ = -1;
  int level_ = -1;
  std::int64_t replans_ = 0;
  double us_ = 0;
};

}  // namespace foretoken
