#include "core/prediction/fallback_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/prediction/plan_search.h"
#include "core/prediction/theory_testing.h"

namespace foretoken {
namespace {

using testing::HasSubstr;

TEST(CriticalBatch, IsWhereTheBackupsChangePlaces) {
  const double E_hit = 4;
  const double E_miss = 1.2;
  const double T_p = 0.8;
  for (const double p_hit : {0.4, 0.6, 0.8}) {
    const double critical = CriticalBatch(p_hit, E_hit, E_miss, T_p);
    ASSERT_TRUE(std::isfinite(critical) && critical > 1) << p_hit;
    for (int b = 1; b <= 64; ++b) {
      const double slow = theory::SpeedupSsd({p_hit, E_hit, E_hit, T_p, T_p}, b);
      const double fast = theory::SpeedupSsd({p_hit, E_hit, E_miss, T_p, 0}, b);
      EXPECT_EQ(slow > fast, b < critical) << p_hit << " " << b;
    }
  }
}

TEST(CriticalBatch, IsClamped) {
  const double always = std::numeric_limits<double>::infinity();
  EXPECT_EQ(CriticalBatch(0.5, 4, 1, 0.1), always);  // Waiting costs less than it brings.
  EXPECT_EQ(CriticalBatch(0.5, 2, 2, 0.5), 0);       // As good, and at once.
  EXPECT_EQ(CriticalBatch(0.5, 2, 3, 0.5), 0);       // Better, and at once.
  EXPECT_EQ(CriticalBatch(0.5, 4, 2, 0), always);    // Nothing to wait for.
  EXPECT_EQ(CriticalBatch(0.5, 2, 3, 0), 0);
  EXPECT_EQ(CriticalBatch(1, 4, 1, 0.5), always);
  EXPECT_EQ(CriticalBatch(0, 4, 3, 0.5), 0);
  EXPECT_EQ(CriticalBatch(0, 4, 1, 0.5), always);
}

CostModel Model(double draft_us, double acceptance) {
  CostModel model;
  model.target = TimeTable::Line(1000, 5);
  model.first_draft().apart = TimeTable::Line(draft_us, 1);
  model.first_draft().on_target = model.first_draft().apart;
  model.proposers[DrafterId::kModel].acceptance.push_back(acceptance);
  model.proposers[DrafterId::kModel].curves = {HitCurve::FromPowerLaw({.c = 0.5, .r = 0.5}),
                                               HitCurve::FromPowerLaw({.c = 0.35, .r = 0.7})};
  return model;
}

FallbackRule Rule(const CostModel& model) {
  return FindFallbackRule(model, PlanSsd(model, 4, 15, Fallback::kJit), 256).value();
}

TEST(FallbackRule, IsTheoremSeventeenOnMeasuredNumbers) {
  const FallbackRule rule = Rule(Model(50, 0.8));
  EXPECT_EQ(rule.fast, Fallback::kNone);
  EXPECT_NEAR(rule.E_hit, theory::ExpectedTokens(0.8, 4), 1e-9);
  EXPECT_EQ(rule.E_miss, 1);
  EXPECT_NEAR(rule.T_p, 4 * 51.0 / 1025, 1e-9);
  EXPECT_EQ(rule.b_star, CriticalBatch(rule.p_hit, rule.E_hit, rule.E_miss, rule.T_p));
  EXPECT_GT(rule.b_star, 1);
  EXPECT_THAT(ExplainFallbackRule(rule), HasSubstr("Theorem 17 with p_hit = 0."));
}

TEST(FallbackRule, SlowDraftsAreNotWaitedFor) {
  const FallbackRule rule = Rule(Model(2000, 0.3));
  EXPECT_EQ(rule.T_p, 1);  // The theorem's limit.
  EXPECT_LT(rule.b_star, 1);
  EXPECT_EQ(rule.crossover, 1);
  EXPECT_THAT(ExplainFallbackRule(rule), HasSubstr("worth waiting for at no batch size"));
}

TEST(FallbackRule, ComparesWithTheBestThatIsMeasured) {
  CostModel model = Model(50, 0.8);
  model.proposers[DrafterId::kNgram].acceptance.push_back(0.5);
  model.proposers[DrafterId::kNgram].coverage = 0.5;
  model.proposers[DrafterId::kNgram].curves = model.proposers[DrafterId::kModel].curves;
  const FallbackRule rule = Rule(model);
  EXPECT_EQ(rule.fast, Fallback::kNgram);
  EXPECT_NEAR(rule.E_miss, 1 + 0.5 * (theory::ExpectedTokens(0.5, 4) - 1), 1e-9);
}

TEST(FallbackRule, NeedsADraft) {
  CostModel model;
  model.target = TimeTable::Line(1000, 5);
  EXPECT_FALSE(FindFallbackRule(model, {.mode = Mode::kSsd}, 256).has_value());
}

}  // namespace
}  // namespace foretoken
