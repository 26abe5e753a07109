#include "core/planner/open_plan.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

constexpr Workload kOpenLoad{.batch = 1, .context = 64};

CostModel Model() {
  CostModel model;
  model.target = TimeTable::Line(1000, 10);
  model.first_draft().apart = model.first_draft().on_target = TimeTable::Line(50, 1);
  model.proposers[DrafterId::kModel].acceptance.push_back(0.8);
  model.proposers[DrafterId::kModel].curves = {
      .partial = HitCurve::FromPowerLaw({.c = 0.5, .r = 0.5}),
      .full = HitCurve::FromPowerLaw({.c = 0.35, .r = 0.7})};
  return model;
}

SpeculationPlan Wanted(FanoutRule rule, Fallback fallback) {
  SpeculationPlan plan{.mode = Mode::kSsd, .lookahead = 4, .fallback = fallback};
  plan.primary = plan.after_fallback = UniformFanout(3, 4);
  plan.saguaro_c = 0.5F;
  plan.fanout = rule;
  return plan;
}

TEST(OpenPlan, KeepsWhatIsGivenAndShapesTheRest) {
  const CostModel model = Model();
  for (const FanoutRule rule :
       {FanoutRule::kGiven, FanoutRule::kUniform, FanoutRule::kGeometric, FanoutRule::kPlanned}) {
    const SpeculationPlan wanted = Wanted(rule, Fallback::kNone);
    const SpeculationPlan plan = FillIn(model, {}, wanted, kOpenLoad).plan;
    EXPECT_FALSE(plan.open());
    EXPECT_EQ(plan.saguaro_c, 0.5F);
    EXPECT_EQ(plan.primary.budget(), 15);
    EXPECT_EQ(plan.primary == wanted.primary, rule == FanoutRule::kGiven);
  }
}

TEST(OpenPlan, TakesTheFastestOfTheFallbacksThatMayBe) {
  CostModel model = Model();
  PlannerSettings settings;
  settings.limits.fallbacks = {};
  for (const Fallback fallback : {Fallback::kNone, Fallback::kJit}) {
    settings.limits.fallbacks.push_back(fallback);
  }
  const SpeculationPlan wanted = Wanted(FanoutRule::kPlanned, Fallback::kAuto);
  EXPECT_EQ(FillIn(model, settings, wanted, kOpenLoad).plan.fallback, Fallback::kJit);
  model.first_draft().apart = TimeTable::Line(900, 1);
  EXPECT_EQ(FillIn(model, settings, wanted, kOpenLoad).plan.fallback, Fallback::kNone);
}

TEST(OpenPlan, ClimbsToWhereNoStepHelps) {
  const CostModel model = Model();
  const RankedPlan first = Climb(model, {}, kOpenLoad);
  EXPECT_NE(first.plan.mode, Mode::kAr);
  const RankedPlan plain{{}, Predict(model, {}, kOpenLoad)};
  EXPECT_GT(first.prediction.tokens_per_second, plain.prediction.tokens_per_second);
}

}  // namespace
}  // namespace foretoken
