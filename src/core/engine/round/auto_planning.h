#pragma once

#include <optional>
#include <span>

#include "core/engine/round/drafters.h"
#include "core/engine/round/round.h"
#include "core/planner/online_planner.h"
#include "core/ssd/speculator_client.h"

namespace foretoken {

/// What the running sequences ask of the engine now.
Workload LoadOf(const RunningSet& running);

/// How a proposal of `drafter` would have fared, behind which `text` came.
ProposalObservation WhatCameTrue(DrafterId drafter, const Proposal& proposal,
                                 std::span<const Token> text);

/// Mode auto in a round: what the planner is taught, and the plans that it makes. A sequence whose
/// plan is open carries a SequenceEstimate.
class AutoPlanning {
 public:
  AutoPlanning(const CostModel& prior, const PlannerSettings& settings)
      : shadow_drafter_(settings.shadow_drafter), planner_(prior, settings) {}

  /// The plan of a sequence that leaves its own open, and an estimate for it.
  void MakeFirstPlan(const RunningSet& running, Sequence* sequence);

  /// Passes of the speculator that ended beside a round.
  void ObserveDraft(const DraftPasses& news, const RunningSet& running);

  /// Before a round's proposals: now and then makes a shadow proposal, by
  /// PlannerSettings::shadow_drafter for a sequence that something else drafts for, and compares
  /// with the text what was proposed so for it the last time. Nothing of it is verified.
  void ProposeShadow(const RunningSet& running, Drafters* drafters);
  /// A pass has verified a sequence: tells that drafter of it now and then, which may learn from
  /// it.
  void TellShadow(Logits logits, const Sequence& sequence, const RunningSet& running,
                  Drafters* drafters) const;

  /// Learns from a round that was verified, and plans its sequences' next ones.
  void Consult(const Round& round, const RunningSet& running);

  /// What is believed of times now, whatever the sequence.
  CostModel Learned() const { return planner_.Model({}); }
  PlannerReport Report() const { return planner_.Report(); }

 private:
  void Learn(const Round& round, int rounds);
  // Whether another than `shadow_drafter_` drafts for a sequence of mode auto.
  bool MayShadow(const Sequence& sequence) const;

  const std::optional<DrafterId> shadow_drafter_;
  OnlinePlanner planner_;
  unsigned rounds_ = 0;
  unsigned alike_rounds_ = 0;
};

}  // namespace foretoken
