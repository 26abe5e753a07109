#include "core/prediction/plan_search.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/prediction/fanout_solver.h"

namespace foretoken {
namespace {

HitCurves GoodCurves() {
  return {.partial = HitCurve::FromPowerLaw({.c = 0.45, .r = 0.8}),
          .full = HitCurve::FromPowerLaw({.c = 0.15, .r = 1})};
}

// A machine where 16 rows cost little more than one, and a draft of a tenth of the target's cost.
CostModel GoodMachine(double acceptance) {
  CostModel model;
  model.target = TimeTable::Line(10'000, 50);
  model.first_draft().apart = TimeTable::Line(1000, 10);
  model.first_draft().on_target = TimeTable::Line(1000, 10);
  model.proposers[DrafterId::kModel].acceptance.push_back(acceptance);
  model.proposers[DrafterId::kModel].curves = GoodCurves();
  return model;
}

TEST(PlanSsd, SolvesBothShapes) {
  CostModel model = GoodMachine(0.8);
  model.proposers[DrafterId::kNgram].acceptance.push_back(0.2);
  model.proposers[DrafterId::kNgram].curves = GoodCurves();
  const SpeculationPlan plan = PlanSsd(model, 6, 21, Fallback::kNgram);
  EXPECT_EQ(plan.primary.budget(), 21);
  EXPECT_EQ(plan.after_fallback.budget(), 21);
  // Prompt lookup is refused early, so its first nodes matter more.
  EXPECT_GT(plan.after_fallback.at[0], plan.primary.at[0]);
  EXPECT_GT(plan.primary.at[6], plan.after_fallback.at[6]);
  EXPECT_EQ(PlanSsd(model, 6, 21, Fallback::kNone).after_fallback, plan.primary);
}

TEST(ChoosePlan, PicksSsdWhereRowsAreCheapAndTheDraftIsGood) {
  const PlanChoice choice = ChoosePlan(GoodMachine(0.8), {}, {});
  EXPECT_EQ(choice.ranked.front().plan.mode, Mode::kSsd) << choice.reason;
  EXPECT_NE(choice.reason.find("Its cache answers"), std::string::npos) << choice.reason;
  EXPECT_NE(choice.reason.find("x sd (K = "), std::string::npos) << choice.reason;
  EXPECT_NE(choice.reason.find("x ar"), std::string::npos) << choice.reason;
  for (std::size_t i = 1; i < choice.ranked.size(); ++i) {
    EXPECT_GE(choice.ranked[i - 1].prediction.tokens_per_second,
              choice.ranked[i].prediction.tokens_per_second);
  }
}

TEST(ChoosePlan, PicksSdWhereTheDraftsDeviceIsTooSlow) {
  CostModel model = GoodMachine(0.8);
  model.first_draft().apart = TimeTable::Line(30'000, 100);
  const PlanChoice choice = ChoosePlan(model, {}, {});
  EXPECT_EQ(choice.ranked.front().plan.mode, Mode::kSd) << choice.reason;
  EXPECT_NE(choice.reason.find("miss the cache"), std::string::npos) << choice.reason;
}

TEST(ChoosePlan, PicksArWhereSpeculationDoesNotPay) {
  CostModel hopeless = GoodMachine(0.001);
  hopeless.proposers[DrafterId::kModel].curves = {};
  const PlanChoice choice = ChoosePlan(hopeless, {}, {});
  EXPECT_EQ(choice.ranked.front().plan.mode, Mode::kAr) << choice.reason;

  CostModel costly_rows = GoodMachine(0.5);  // Each row as dear as the first.
  costly_rows.target = TimeTable::Line(0, 10'000);
  const PlanChoice other = ChoosePlan(costly_rows, {}, {});
  EXPECT_EQ(other.ranked.front().plan.mode, Mode::kAr) << other.reason;
  EXPECT_NE(other.reason.find("rows a sequence"), std::string::npos) << other.reason;
}

TEST(ChoosePlan, KnowsOnlyArWithoutADraft) {
  CostModel model;
  model.target = TimeTable::Line(10'000, 0);
  const PlanChoice choice = ChoosePlan(model, {}, {});
  ASSERT_EQ(choice.ranked.size(), 1);
  EXPECT_EQ(choice.ranked[0].plan.mode, Mode::kAr);
  EXPECT_NE(choice.reason.find("Nothing else"), std::string::npos);
}

TEST(ImprovePlan, ClimbsCloseToTheBest) {
  for (const double acceptance : {0.05, 0.4, 0.7, 0.95}) {
    for (const int batch : {1, 4, 16}) {
      const CostModel model = GoodMachine(acceptance);
      const Workload load{.batch = batch};
      const double best = ChoosePlan(model, {}, load).ranked[0].prediction.tokens_per_second;
      RankedPlan plan = {};
      for (int step = 0; step < 20; ++step) {
        const RankedPlan next = ImprovePlan(model, {}, load, plan.plan);
        EXPECT_GE(next.prediction.tokens_per_second,
                  plan.prediction.tokens_per_second * (1 - 1e-9));
        plan = next;
      }
      EXPECT_GT(plan.prediction.tokens_per_second, 0.98 * best) << acceptance << " " << batch;
    }
  }
}

// Kernels work on blocks of 16 rows, so that K = 4 to 6 at a batch of 4 is worse than K = 3, and 7
// better.
TEST(ImprovePlan, StepsOverBlocksOfRows) {
  CostModel model = GoodMachine(0.98);
  const std::array rows = {1, 16, 17, 32, 33, 64};
  const std::array contexts = {64};
  const std::array<double, 6> us = {10'000, 10'000, 16'500, 17'000, 27'000, 40'000};
  model.target = *TimeTable::Make(rows, contexts, us);
  const Workload load{.batch = 4};
  PlanLimits limits;
  limits.fallbacks = {};
  limits.fallbacks.push_back(Fallback::kNone);
  RankedPlan plan{.plan = PlanSsd(model, 3, 12, Fallback::kNone), .prediction = {}};
  for (int step = 0; step < 20; ++step) plan = ImprovePlan(model, limits, load, plan.plan);
  EXPECT_EQ(plan.plan.mode, Mode::kSsd);
  EXPECT_EQ(plan.plan.lookahead, 7);
}

TEST(PlanLimits, AreKept) {
  PlanLimits limits;
  limits.modes = {};
  limits.modes.push_back(Mode::kSsd);
  limits.min_lookahead = 3;
  limits.max_lookahead = 5;
  limits.cache_budget = 5;
  limits.fallbacks = {};
  limits.fallbacks.push_back(Fallback::kJit);
  for (const RankedPlan& ranked : ChoosePlan(GoodMachine(0.8), limits, {}).ranked) {
    EXPECT_EQ(ranked.plan.mode, Mode::kSsd);
    EXPECT_GE(ranked.plan.lookahead, 3);
    EXPECT_LE(ranked.plan.lookahead, 4);  // B must be at least K + 1.
    EXPECT_EQ(ranked.plan.primary.budget(), 5);
    EXPECT_EQ(ranked.plan.fallback, Fallback::kJit);
  }
}

}  // namespace
}  // namespace foretoken
