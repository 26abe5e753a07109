#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/static_vector.h"
#include "core/prediction/cost_model.h"
#include "core/prediction/predict.h"
#include "core/speculation/plan.h"

namespace foretoken {

/// The plans to choose among.
struct PlanLimits {
  /// Concrete ones; what is not measured is left out.
  StaticVector<Mode, kModeCount> modes = AllModes();
  int min_lookahead = 1;
  int max_lookahead = kMaxPlannedLookahead;
  /// Cache budgets B, as multiples of K + 1 (mean fan-outs), in ascending order; ImprovePlan takes
  /// any between the first and the last.
  StaticVector<int, 8> mean_fanouts = {1, 2, 3, 4, 6, 8};
  /// The only B, where it is at least K + 1; none: as `mean_fanouts`.
  std::optional<int> cache_budget;
  int max_cache_budget = kMaxCacheBudget;
  StaticVector<Fallback, kFallbacks.size()> fallbacks = AllFallbacks();

  static StaticVector<Mode, kModeCount> AllModes();                 ///< But baselines and auto.
  static StaticVector<Fallback, kFallbacks.size()> AllFallbacks();  ///< None first, but auto.
};

struct RankedPlan {
  SpeculationPlan plan;
  Prediction prediction;
};

/// `plan` with what Predict says of it.
inline RankedPlan RankPlan(const CostModel& model, const SpeculationPlan& plan,
                           const Workload& load) {
  return {plan, Predict(model, plan, load)};
}

/// The SSD plan whose fan-outs are solved (SolveFanout) for the model's acceptance and hit curves,
/// after a proposal from the cache and after the fallback's, each with `budget` branches.
SpeculationPlan PlanSsd(const CostModel& model, int lookahead, int budget, Fallback fallback);

/// The limits' modes in which others draft, where a draft model's passes draft in `mode`: other
/// models, and drafters of texts whose rows have prices.
StaticVector<Mode, kModeCount> ModesOfOtherDrafters(const CostModel& model,
                                                    const PlanLimits& limits, Mode mode);

/// The fastest of `current`, the plans next to it (one step in K, B or fallback; half or twice the
/// rows) and the other modes at about its K, and a few of each mode of other drafters; of a plan
/// that has no neighbours (AR, or a mode whose rows have prices), of a few of each mode. Some
/// tenths of a millisecond, for re-planning while decoding. Repeated, it climbs to where no step
/// helps. Allocates nothing.
RankedPlan ImprovePlan(const CostModel& model, const PlanLimits& limits, const Workload& load,
                       const SpeculationPlan& current);

/// Every plan's prediction, and the choice in words.
struct PlanChoice {
  std::vector<RankedPlan> ranked;  ///< The fastest first; never empty.
  std::string reason;              ///< One or two sentences.
};

/// Searches all plans; AR where no other can be predicted, and K as small as possible among equals.
/// Takes 5 to 20 ms. Needs model.target.
PlanChoice ChoosePlan(const CostModel& model, const PlanLimits& limits, const Workload& load);

/// Why the first of `ranked`, which are in order and not empty, is the fastest: two sentences that
/// compare it with the best of each other mode.
std::string ExplainChoice(std::span<const RankedPlan> ranked);

}  // namespace foretoken
