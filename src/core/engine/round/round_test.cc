#include "core/engine/round/round.h"

#include <gtest/gtest.h>

#include "core/engine/sequence_testing.h"

namespace foretoken {
namespace {

TEST(RoundTimer, SplitsTheTimeBetweenPasses) {
  RoundTimer timer;
  Round round;
  timer.RecordPass(100, 150, &round);
  EXPECT_EQ(round.gap_ns, -1);
  EXPECT_EQ(round.all_ns, 50);
  round.wait_ns = 30;
  timer.RecordPass(200, 260, &round);
  EXPECT_EQ(round.gap_ns, 50);
  EXPECT_EQ(round.pass_ns, 60);
  EXPECT_EQ(round.all_ns, 110);
  EXPECT_EQ(timer.stats().target.count(), 2);
  EXPECT_EQ(timer.stats().host.count(), 1);
}

TEST(RoundTimer, IdleTimeIsNoGapAndPrefillingNoDecoding) {
  RoundTimer timer;
  Round round;
  timer.RecordPass(100, 150, &round);
  timer.Idle();
  timer.RecordPass(900, 950, &round);
  EXPECT_EQ(round.gap_ns, -1);
  EXPECT_EQ(timer.stats().host.count(), 0);
  round.prefills = true;
  timer.RecordPass(960, 970, &round);
  EXPECT_EQ(timer.stats().target.count(), 2);
  EXPECT_EQ(timer.stats().passes, 3);
}

TEST(RoundTimer, AHitGapFollowsARoundInWhichAllHit) {
  RoundTimer timer;
  const auto first = DecodingSequence(1, {1, 2});
  const auto second = DecodingSequence(2, {1, 2});
  Round round;
  round.pass = {first.get(), second.get()};
  first->hit = second->hit = true;
  timer.RecordPass(0 + 1, 10, &round);
  timer.RecordOutcomes(round);
  second->hit = false;
  timer.RecordPass(20, 30, &round);
  timer.RecordOutcomes(round);
  timer.RecordPass(40, 50, &round);
  EXPECT_EQ(timer.stats().hit_gap.count(), 1);
}

}  // namespace
}  // namespace foretoken
