#include "core/planner/trial.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

constexpr Workload kTrialLoad{.batch = 1, .context = 64};

CostModel Prior(double base_us, double row_us) {
  CostModel prior;
  prior.target = TimeTable::Line(base_us, row_us);
  prior.first_draft().apart = prior.first_draft().on_target = TimeTable::Line(30, 1);
  return prior;
}

class TrialTest : public testing::Test {
 protected:
  // What a sequence that decodes plainly should try.
  std::optional<SpeculationPlan> Choose(const LearnedModel& learned) {
    const CostModel model = learned.Model({});
    const RankedPlan plain{{}, Predict(model, {}, kTrialLoad)};
    return trial_.Choose(learned, model, limits_, {}, plain, kTrialLoad);
  }
  void CountRounds(int rounds) {
    for (int i = 0; i < rounds; ++i) trial_.CountRound();
  }

  Trial trial_;
  PlanLimits limits_;
};

TEST_F(TrialTest, ATrialIsOneSequencesAndThenOfAll) {
  limits_.modes = {Mode::kAr, Mode::kSd, Mode::kSsd, Mode::kNgram};
  const LearnedModel learned(Prior(100, 5));
  EXPECT_FALSE(Choose(learned).has_value());  // Not at once.
  CountRounds(8);
  const std::optional<SpeculationPlan> tried = Choose(learned);
  ASSERT_TRUE(tried.has_value());
  EXPECT_NE(tried->mode, Mode::kAr);
  EXPECT_LE(tried->lookahead, 4);
  EXPECT_TRUE(trial_.tries(tried->mode));
  EXPECT_FALSE(trial_.by_all());
  EXPECT_FALSE(Choose(learned).has_value());  // Another sequence tries it.
  CountRounds(9);
  EXPECT_TRUE(trial_.by_all());
  EXPECT_EQ(Choose(learned), tried);
  CountRounds(16);
  EXPECT_TRUE(Choose(learned).has_value());  // It is over, and still nothing spoke against it.
  EXPECT_FALSE(trial_.by_all());
}

TEST_F(TrialTest, WhatCannotPayIsNotTried) {
  const LearnedModel learned(Prior(1, 1000));  // A row costs what a plain round does.
  CountRounds(100);
  EXPECT_FALSE(Choose(learned).has_value());
  EXPECT_FALSE(trial_.by_all());
}

}  // namespace
}  // namespace foretoken
