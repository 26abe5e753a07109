#include "apps/lab/load/neighbour.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "base/threads/clock.h"

namespace foretoken {
namespace {

double ProcessSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

TEST(BurstLengths, AreReadAsARangeOrAsOneLength) {
  const Result<BurstLengths> range = ParseBurstLengths("0.5-3");
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(range->least_s, 0.5);
  EXPECT_EQ(range->most_s, 3);
  const Result<BurstLengths> one = ParseBurstLengths("2");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->least_s, 2);
  EXPECT_EQ(one->most_s, 2);
  for (const char* bad : {"", "-", "1-", "-1", "3-1", "0", "1e9", "nan", "1-2-3", "1s"}) {
    const Result<BurstLengths> read = ParseBurstLengths(bad);
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_THAT(read.error().message, testing::HasSubstr("0.5-3")) << bad;
  }
}

TEST(Bursts, WorkAndRestInTurnForLengthsOfTheSeed) {
  const BurstLengths lengths{0.25, 2};
  Bursts bursts(lengths, 7, 1);
  Bursts same(lengths, 7, 1);
  Bursts of_another_core(lengths, 7, 0);
  bool worked = bursts.working();
  int alike = 0;
  double sum = 0;
  constexpr int kCount = 400;
  for (int i = 0; i < kCount; ++i) {
    const std::int64_t length = bursts.Next();
    EXPECT_EQ(length, same.Next());
    if (length == of_another_core.Next()) ++alike;
    EXPECT_NE(bursts.working(), worked);
    EXPECT_EQ(bursts.working(), same.working());
    worked = bursts.working();
    EXPECT_GE(length, 250'000'000);
    EXPECT_LE(length, 2'000'000'000);
    sum += static_cast<double>(length) / 1e9;
  }
  EXPECT_LT(alike, 3);
  EXPECT_NEAR(sum / kCount, 1.125, 0.1);
}

TEST(Bursts, BeginWithEither) {
  int working = 0;
  for (int seed = 0; seed < 200; ++seed) working += Bursts({}, seed, 0).working() ? 1 : 0;
  EXPECT_GT(working, 60);
  EXPECT_LT(working, 140);
}

TEST(Neighbour, WorksAboutHalfOfTheTimeAndEndsAtOnce) {
  const NeighbourPlan plan{{AvailableCores().front()}, {0.02, 0.02}};
  const double cpu = ProcessSeconds();
  {
    const Neighbour neighbour(plan, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  }
  EXPECT_GT(ProcessSeconds() - cpu, 0.02) << "it has worked, on however busy a machine";
  EXPECT_LT(ProcessSeconds() - cpu, 0.35) << "it has rested";
  const NeighbourPlan long_ones{{AvailableCores().front()}, {3600, 3600}};
  const std::int64_t begin = NowNs();
  for (int seed = 0; seed < 4; ++seed) const Neighbour at_work_or_rest(long_ones, seed);
  EXPECT_LT(NowNs() - begin, 60'000'000'000);
}

TEST(NeighbourPlan, NamesItsCoresAndRefusesOnesThatAreNotThere) {
  const Result<NeighbourPlan> none = NeighbourPlan::Read({});
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->cores.empty());
  EXPECT_FALSE(NeighbourPlan::Read({.cores = "4095"}).ok());
  EXPECT_FALSE(NeighbourPlan::Read({.cores = "0", .bursts = "long"}).ok());
}

}  // namespace
}  // namespace foretoken
