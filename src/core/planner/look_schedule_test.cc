#include "core/planner/look_schedule.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(LookSchedule, LevelsOfBatches) {
  EXPECT_EQ(BatchLevel({.batch = 1}), 0);
  EXPECT_EQ(BatchLevel({.batch = 2}), 1);
  EXPECT_EQ(BatchLevel({.batch = 4}), 2);
  EXPECT_EQ(BatchLevel({.batch = 5}), 3);
  EXPECT_EQ(BatchLevel({.batch = 1000}), kBatchLevels - 1);
}

// Looks of 100 us: one in 40,000 us of decoding, 0.25 %.
TEST(LookSchedule, LooksTakeAShareOfTheTime) {
  LookSchedule looks;
  const SequenceEstimate sequence{.rounds = 1000};
  int taken = 0;
  for (int round = 0; round < 4000; ++round) {
    if (looks.Due({}, SpeculationPlan{}, {}, sequence)) {
      looks.Took(100);
      ++taken;
    }
    looks.Advance(1000);
  }
  EXPECT_NEAR(taken, 100, 1);
  EXPECT_EQ(looks.looks(), taken);
  EXPECT_EQ(looks.mean_us(), 100);
}

TEST(LookSchedule, IsEarlyAfterAChangeAndNotOnceThereWereMany) {
  LookSchedule looks;
  looks.Due({}, SpeculationPlan{}, {}, {.rounds = 1000});
  looks.Took(1e6);
  looks.Advance(1);
  const auto due = [&](int rounds) {
    return looks.Due({}, SpeculationPlan{}, {}, {.rounds = rounds});
  };
  for (const int rounds : {4, 8, 16, 32, 64, 128}) EXPECT_TRUE(due(rounds)) << rounds;
  for (const int rounds : {1, 2, 3, 5, 127, 256}) EXPECT_FALSE(due(rounds)) << rounds;
  SequenceEstimate sequence;
  looks.Begin(&sequence);
  EXPECT_EQ(sequence.rounds, 0);
  for (int i = 0; i < 16; ++i) looks.Took(1);
  looks.Begin(&sequence);
  EXPECT_EQ(sequence.rounds, 128);
}

// The first sequence of a round leads. Where the batch comes to another size, all follow what was
// chosen for that.
TEST(LookSchedule, OneLeadsAndTheOthersFollow) {
  LookSchedule looks;
  const SequenceEstimate sequence{.rounds = 1000};
  const SpeculationPlan other{.mode = Mode::kSd, .lookahead = 3};
  EXPECT_TRUE(looks.Due({}, other, {.batch = 1}, sequence));
  looks.Took(1e6);
  looks.Advance(1);
  EXPECT_FALSE(looks.Due({}, other, {.batch = 1}, sequence));
  EXPECT_FALSE(looks.follows());
  looks.Lead();
  EXPECT_TRUE(looks.follows());
  looks.Explore();
  EXPECT_TRUE(looks.explores());
  looks.Advance(1);
  EXPECT_FALSE(looks.follows());
  EXPECT_FALSE(looks.explores());
  EXPECT_TRUE(looks.Due({}, other, {.batch = 8}, sequence));
  EXPECT_TRUE(looks.follows());
  EXPECT_FALSE(looks.Due(other, other, {.batch = 8}, sequence));  // It already has that plan.
}

}  // namespace
}  // namespace foretoken
