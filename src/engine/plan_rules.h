#pragma once

#include <optional>
#include <span>

#include "base/result.h"
#include "foretoken/plan_check.h"
#include "foretoken/speculation.h"
#include "planner/open_plan.h"
#include "speculation/plan.h"

namespace foretoken {

/// What engines do where nothing is asked of them, with a K in [1, kMaxProposal].
SpeculationPlan DefaultPlan(int lookahead);

/// The plan that `options` make of `base`, which is complete; so is the result. Errors name the
/// field at fault.
Result<SpeculationPlan> ApplyOptions(const PlanOptions& options, const SpeculationPlan& base,
                                     FieldSpelling spell = PlainSpelling);

/// What mode auto may choose from beside `plan`, which ApplyOptions made of the options; nothing
/// where a preset says it all.
std::optional<PlannerSettings> PlannerSettingsFor(const PlanOptions& options,
                                                  const SpeculationPlan& plan);

/// The plan with its empty fan-out shapes filled in.
SpeculationPlan CompletePlan(SpeculationPlan plan);

/// What the plans of an engine may ask for.
struct PlanBounds {
  std::span<const Mode> offered;
  int max_lookahead = 0;
  int max_nodes = 0;
  int max_cache_budget = 0;
  bool knows_row_times = false;  ///< The target's passes were measured.
};

/// In one sentence why an engine of these bounds cannot follow the plan, which is complete.
Status CheckPlan(const SpeculationPlan& plan, const PlanBounds& bounds);

}  // namespace foretoken
