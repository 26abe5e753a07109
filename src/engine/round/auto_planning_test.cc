#include "engine/round/auto_planning.h"

#include <gtest/gtest.h>

#include <utility>

#include "engine/sequence_testing.h"

namespace foretoken {
namespace {

class AutoPlanningTest : public testing::Test {
 protected:
  AutoPlanningTest() {
    CostModel costs;
    costs.target = TimeTable::Line(100, 1);
    PlannerSettings settings;
    settings.limits.modes = {};
    settings.limits.modes.push_back(Mode::kAr);
    planning_.emplace(costs, settings);
    running_.push_back(DecodingSequence(1, {1, 2, 3}, {.mode = Mode::kAuto}));
    running_[0]->estimate.emplace();
    planning_->MakeFirstPlan(running_, running_[0].get());
    round_.pass = {running_[0].get()};
    round_.rows = 1;
    round_.pass_ns = 100'000;
  }
  std::int64_t RoundsSeen() const { return planning_->Report().modes[Mode::kAr].rounds; }

  std::optional<AutoPlanning> planning_;
  RunningSet running_;
  Round round_;
};

TEST_F(AutoPlanningTest, NamesAModeFromWhatIsOffered) {
  EXPECT_EQ(running_[0]->plan.mode, Mode::kAr);
}

TEST_F(AutoPlanningTest, OneOfFourPlainShortRoundsStandsForAll) {
  running_[0]->emitted.push_back(1);
  const std::int64_t short_ns = std::exchange(round_.pass_ns, 1'000'000);
  for (int i = 0; i < 2; ++i) planning_->Consult(round_, running_);  // The first only settles it.
  const std::int64_t before = RoundsSeen();
  EXPECT_GT(before, 0);  // Long enough to look at each.
  round_.pass_ns = short_ns;
  for (int i = 0; i < 3; ++i) planning_->Consult(round_, running_);
  EXPECT_EQ(RoundsSeen(), before);
  planning_->Consult(round_, running_);
  EXPECT_GT(RoundsSeen(), before);
}

TEST_F(AutoPlanningTest, RoundsThatPrefillTeachNothingOfPasses) {
  round_.pass_ns = 1'000'000;
  round_.prefills = true;
  planning_->Consult(round_, running_);
  EXPECT_EQ(RoundsSeen(), 0);
}

TEST(LoadOf, TakesMeansOverTheRunningSet) {
  RunningSet running;
  running.push_back(DecodingSequence(1, {1, 2}));
  running.push_back(DecodingSequence(2, {1, 2, 3, 4}));
  const Workload load = LoadOf(running);
  EXPECT_EQ(load.batch, 2);
  EXPECT_EQ(load.context, 3);
  EXPECT_EQ(load.tokens_left, 8);
  EXPECT_EQ(LoadOf({}).batch, 1);
}

}  // namespace
}  // namespace foretoken
