#include "core/planner/replan_schedule.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(ReplanSchedule, LevelsOfBatches) {
  EXPECT_EQ(BatchLevel({.batch = 1}), 0);
  EXPECT_EQ(BatchLevel({.batch = 2}), 1);
  EXPECT_EQ(BatchLevel({.batch = 4}), 2);
  EXPECT_EQ(BatchLevel({.batch = 5}), 3);
  EXPECT_EQ(BatchLevel({.batch = 1000}), kBatchLevels - 1);
}

// Replans of 100 us: one in 40,000 us of decoding, 0.25 %.
TEST(ReplanSchedule, ReplansTakeAShareOfTheTime) {
  ReplanSchedule schedule;
  const SequenceEstimate sequence{.rounds = 1000};
  int taken = 0;
  for (int round = 0; round < 4000; ++round) {
    if (schedule.Due({}, SpeculationPlan{}, {}, sequence)) {
      schedule.Took(100);
      ++taken;
    }
    schedule.Advance(1000);
  }
  EXPECT_NEAR(taken, 100, 1);
  EXPECT_EQ(schedule.replans(), taken);
  EXPECT_EQ(schedule.mean_us(), 100);
}

TEST(ReplanSchedule, IsEarlyAfterAChangeAndNotOnceThereWereMany) {
  ReplanSchedule schedule;
  schedule.Due({}, SpeculationPlan{}, {}, {.rounds = 1000});
  schedule.Took(1e6);
  schedule.Advance(1);
  const auto due = [&](int rounds) {
    return schedule.Due({}, SpeculationPlan{}, {}, {.rounds = rounds});
  };
  for (const int rounds : {4, 8, 16, 32, 64, 128}) EXPECT_TRUE(due(rounds)) << rounds;
  for (const int rounds : {1, 2, 3, 5, 127, 256}) EXPECT_FALSE(due(rounds)) << rounds;
  SequenceEstimate sequence;
  schedule.Begin(&sequence);
  EXPECT_EQ(sequence.rounds, 0);
  for (int i = 0; i < 16; ++i) schedule.Took(1);
  schedule.Begin(&sequence);
  EXPECT_EQ(sequence.rounds, 128);
}

// The first sequence of a round leads. Where the batch comes to another size, all follow what was
// chosen for that.
TEST(ReplanSchedule, OneLeadsAndTheOthersFollow) {
  ReplanSchedule schedule;
  const SequenceEstimate sequence{.rounds = 1000};
  const SpeculationPlan other{.mode = Mode::kSd, .lookahead = 3};
  EXPECT_TRUE(schedule.Due({}, other, {.batch = 1}, sequence));
  schedule.Took(1e6);
  schedule.Advance(1);
  EXPECT_FALSE(schedule.Due({}, other, {.batch = 1}, sequence));
  EXPECT_FALSE(schedule.follows());
  schedule.Lead();
  EXPECT_TRUE(schedule.follows());
  schedule.Explore();
  EXPECT_TRUE(schedule.explores());
  schedule.Advance(1);
  EXPECT_FALSE(schedule.follows());
  EXPECT_FALSE(schedule.explores());
  EXPECT_TRUE(schedule.Due({}, other, {.batch = 8}, sequence));
  EXPECT_TRUE(schedule.follows());
  EXPECT_FALSE(schedule.Due(other, other, {.batch = 8}, sequence));  // It already has that plan.
}

}  // namespace
}  // namespace foretoken
