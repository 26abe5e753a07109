#pragma once

#include "engine/round/round.h"
#include "planner/online_planner.h"
#include "ssd/speculator_client.h"

namespace foretoken {

/// What the running sequences ask of the engine now.
Workload LoadOf(const RunningSet& running);

/// Mode auto in a round: what the planner is taught, and the plans that it makes. A sequence whose
/// plan is open carries a SequenceEstimate.
class AutoPlanning {
 public:
  AutoPlanning(const CostModel& prior, const PlannerSettings& settings)
      : planner_(prior, settings) {}

  /// The plan of a sequence that leaves its own open, and an estimate for it.
  void MakeFirstPlan(const RunningSet& running, Sequence* sequence);

  /// Passes of the speculator that ended beside a round.
  void ObserveDraft(const DraftPasses& news, const RunningSet& running);

  /// Learns from a round that was verified, and plans its sequences' next ones.
  void Consult(const Round& round, const RunningSet& running);

  /// What is believed of times now, whatever the sequence.
  CostModel Learned() const { return planner_.Model({}); }
  PlannerReport Report() const { return planner_.Report(); }

 private:
  void Learn(const Round& round, int rounds);

  OnlinePlanner planner_;
  unsigned alike_rounds_ = 0;
};

}  // namespace foretoken
