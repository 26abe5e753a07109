#pragma once

#include <optional>

#include "core/prediction/plan_search.h"
#include "core/speculation/plan.h"

namespace foretoken {

/// What the planner may decide for sequences of mode auto. Limits that leave one plan leave it the
/// shape of the fan-out.
struct PlannerSettings {
  PlanLimits limits;                         ///< Modes, K, B and fallbacks to choose among.
  FanoutRule fanout = FanoutRule::kPlanned;  ///< Not kGiven.
  /// A drafter of texts that makes shadow proposals: now and then it is asked beside whatever else
  /// drafts, so that it is known what it would give before a row is verified for it.
  std::optional<DrafterId> shadow_drafter;
};

/// Gives `plan` what `wanted`, an open plan, says of it, and the fan-outs that its rule asks for
/// (`settings` where `wanted` leaves the mode open).
void Shape(const CostModel& model, const PlannerSettings& settings, const SpeculationPlan& wanted,
           SpeculationPlan* plan);

/// `wanted` of mode ssd, shaped, with the fastest fallback that it leaves open.
RankedPlan FillIn(const CostModel& model, const PlannerSettings& settings,
                  const SpeculationPlan& wanted, const Workload& load);

/// The best of a few plans of each mode, then uphill.
RankedPlan Climb(const CostModel& model, const PlanLimits& limits, const Workload& load);

}  // namespace foretoken
