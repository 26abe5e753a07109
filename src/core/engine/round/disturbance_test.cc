#include "core/engine/round/disturbance.h"

#include <gtest/gtest.h>

#include <thread>

namespace foretoken {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// Passes of 5 ms, one after the other.
class DisturbanceTest : public testing::Test {
 protected:
  bool Pass(std::int64_t waited_ns) {
    now_ns_ += 5 * kMs;
    return disturbance_.Observe(now_ns_, 5 * kMs, {.workers_ns = waited_ns});
  }

  std::int64_t now_ns_ = 1'000 * kMs;
  Disturbance disturbance_;
};

TEST_F(DisturbanceTest, IsWhereThreadsWaitedAndShortlyAfter) {
  EXPECT_FALSE(Pass(0));
  EXPECT_FALSE(Pass(kMs / 10)) << "what the system takes for itself";
  EXPECT_TRUE(Pass(3 * kMs));
  EXPECT_TRUE(Pass(0));
  EXPECT_TRUE(Pass(0));
  EXPECT_TRUE(Pass(0));
  EXPECT_FALSE(Pass(0));
}

TEST_F(DisturbanceTest, OfSecondsIsAnException) {
  int disturbed = 0;
  for (int burst = 0; burst < 20; ++burst) {
    for (int pass = 0; pass < 600; ++pass) disturbed += Pass(2 * kMs) ? 1 : 0;
    for (int pass = 0; pass < 600; ++pass) (void)Pass(0);
  }
  EXPECT_EQ(disturbed, 20 * 600);
}

TEST_F(DisturbanceTest, ThatNeverEndsIsHowTheMachineIs) {
  int taught_after = 0;
  while (Pass(2 * kMs)) taught_after += 5;
  EXPECT_GT(taught_after, 20'000);
  EXPECT_LT(taught_after, 60'000);
  for (int pass = 0; pass < 6'000; ++pass) (void)Pass(0);
  EXPECT_TRUE(Pass(2 * kMs)) << "after a while without it, it is an exception again";
}

TEST(OwnersCore, IsLeftWhereTheOwnerLosesMoreThanTheWorkers) {
  // Twenty passes of 5 ms: twice what is judged at once.
  const auto moves = [](const CoreWaits& waits, int threads) {
    OwnersCore owners_core;
    int count = 0;
    for (int i = 0; i < 20; ++i) count += owners_core.Observe(5 * kMs, waits, threads) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(moves({.owner_ns = 2 * kMs}, 2), 2);
  EXPECT_EQ(moves({.owner_ns = 2 * kMs}, 1), 0) << "there is no other core";
  EXPECT_EQ(moves({.owner_ns = kMs / 2}, 2), 0) << "it is not worth it";
  EXPECT_EQ(moves({.owner_ns = 2 * kMs, .workers_ns = 2 * kMs}, 2), 0) << "all cores are taken";
  EXPECT_EQ(moves({.owner_ns = 2 * kMs, .workers_ns = 2 * kMs}, 4), 2) << "one of three workers'";
  EXPECT_EQ(moves({.workers_ns = 4 * kMs}, 2), 0);
}

TEST(PassWatch, SeesWhenItsThreadWaitsForItsCore) {
  ThreadPool pool({AvailableCores().front()});
  std::thread([&] {
    pool.Adopt();
    PassWatch watch;
    watch.Begin(kMs);
    // What does not run although it could is what a sleep looks like from outside.
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_GE(watch.End(pool).owner_ns, 25 * kMs);
    watch.Begin(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(watch.End(pool).owner_ns, 0)
        << "passes that are expected to be short are not watched";
  }).join();
}

}  // namespace
}  // namespace foretoken
