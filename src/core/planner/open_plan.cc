#include "core/planner/open_plan.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "core/prediction/fanout_solver.h"
#include "core/prediction/row_price.h"

namespace foretoken {
namespace {

constexpr int kFirstLookahead = 4;
constexpr int kFirstFanout = 3;
// Theorem 12 needs r > 0; where a fit has none, all candidates are as good as each other.
constexpr double kLeastExponent = 0.01;

FanoutShape ShapeBy(FanoutRule rule, const ProposerModel& verified, int lookahead, int budget) {
  if (rule == FanoutRule::kUniform) return EvenFanout(budget, lookahead);
  if (rule == FanoutRule::kGeometric) {
    std::array<double, kMaxFanout> hits{};
    for (int f = 1; f <= kMaxFanout; ++f) hits[f - 1] = verified.curves.partial.hit(f);
    const double r = std::max(FitPowerLaw(hits).r, kLeastExponent);
    return GeometricFanoutShape(verified.acceptance[0], r, lookahead, budget);
  }
  return SolveFanout(OutcomeNodes(verified.acceptance, lookahead), verified.curves, budget);
}

SpeculationPlan Start(const CostModel& model, const PlanLimits& limits) {
  const auto may = [&](Mode mode) {
    return std::ranges::find(limits.modes, mode) != limits.modes.end();
  };
  if (may(Mode::kAr)) return {};
  const int K = std::clamp(kFirstLookahead, limits.min_lookahead, limits.max_lookahead);
  if (!may(Mode::kSsd)) return {.mode = limits.modes[0], .lookahead = K};
  const int fanout =
      std::clamp(kFirstFanout, *limits.mean_fanouts.begin(), limits.mean_fanouts.back());
  const int budget = limits.cache_budget.value_or(fanout * (K + 1));
  return PlanSsd(model, K, budget, limits.fallbacks[0]);
}

}  // namespace

void Shape(const CostModel& model, const PlannerSettings& settings, const SpeculationPlan& wanted,
           SpeculationPlan* plan) {
  plan->speculation_length = wanted.speculation_length;
  if (wanted.mode.planned() && PricesRows(plan->mode) && !wanted.speculation_length) {
    plan->speculation_length = kAutoSpeculationLength;
  }
  if (!plan->mode.during()) return;
  plan->saguaro_c = wanted.saguaro_c;
  plan->cache_order = wanted.cache_order;
  const FanoutRule rule = wanted.mode.planned() ? settings.fanout : wanted.fanout;
  if (rule == FanoutRule::kGiven) return;
  const int budget = plan->primary.budget();
  const ProposerModel* fallback = model.proposer(plan->fallback);
  const bool measured = fallback != nullptr && fallback->measured();
  plan->after_fallback =
      ShapeBy(rule, measured ? *fallback : model.draft_model(), plan->lookahead, budget);
  plan->primary = ShapeBy(rule, model.draft_model(), plan->lookahead, budget);
}

RankedPlan FillIn(const CostModel& model, const PlannerSettings& settings,
                  const SpeculationPlan& wanted, const Workload& load) {
  RankedPlan best;
  const auto consider = [&](Fallback fallback) {
    SpeculationPlan plan = wanted;
    plan.fallback = fallback;
    plan.fanout = FanoutRule::kGiven;
    Shape(model, settings, wanted, &plan);
    if (!CanPredict(model, plan)) return;
    const RankedPlan ranked = RankPlan(model, plan, load);
    if (ranked.prediction.tokens_per_second > best.prediction.tokens_per_second) best = ranked;
  };
  if (wanted.fallback != Fallback::kAuto) {
    consider(wanted.fallback);
  } else {
    for (const Fallback fallback : settings.limits.fallbacks) consider(fallback);
  }
  FT_CHECK(best.plan.mode.during(), "fallback {} cannot be planned", FallbackName(wanted.fallback));
  return best;
}

RankedPlan Climb(const CostModel& model, const PlanLimits& limits, const Workload& load) {
  RankedPlan ranked{.plan = Start(model, limits), .prediction = {}};
  for (int step = 0; step < 4; ++step) {
    const RankedPlan better = ImprovePlan(model, limits, load, ranked.plan);
    if (better.plan == ranked.plan) break;
    ranked = better;
  }
  return ranked;
}

}  // namespace foretoken
