#pragma once

#include <optional>

#include "core/planner/learned_model.h"
#include "core/prediction/plan_search.h"

namespace foretoken {

/// What is tried although it is not the best as far as is known. Exploration needs no dice: what
/// may be faster, if acceptance, hits and speed were as good as what was seen leaves possible, is
/// tried by one sequence, which costs little; what then may still be, by all for a while, since
/// only that shows how fast it is.
class Trial {
 public:
  /// A round that measures the speed of its mode.
  void CountRound() { ++rounds_; }

  /// What a sequence that leads the others should try in place of `next`, the best as far as is
  /// known; none: nothing.
  std::optional<SpeculationPlan> Choose(const LearnedModel& learned, const CostModel& model,
                                        const PlanLimits& limits, const SpeculationPlan& current,
                                        const RankedPlan& next, const Workload& load);

  /// What was chosen cannot be afforded.
  void GiveUp() { tried_.reset(); }

  /// All sequences try, not only one.
  bool by_all() const;
  /// `mode` is being tried.
  bool tries(Mode mode) const { return tried_.has_value() && tried_->mode == mode; }

 private:
  std::optional<SpeculationPlan> tried_;  // By a sequence, then by all.
  int rounds_ = 0;                        // Since a trial began.
};

/// A plan of SSD beside `best`, of SSD, which all sequences use: its rows, of which is to be seen
/// how long they take.
std::optional<SpeculationPlan> RowsWorthSeeing(const LearnedModel& learned, const CostModel& model,
                                               const PlanLimits& limits,
                                               const SpeculationPlan& best, const Workload& load);

}  // namespace foretoken
