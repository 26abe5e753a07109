#include "core/ssd/restart_schedule.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(RestartSchedule, AFirstLossIsHealedAtOnce) {
  RestartSchedule schedule;
  schedule.Lost(5 * kSecond);
  EXPECT_TRUE(schedule.Due(5 * kSecond));
}

TEST(RestartSchedule, OneThatIsLostAgainAndAgainIsTriedEverMoreRarely) {
  RestartSchedule schedule;
  std::int64_t now = 0;
  schedule.Lost(now);
  for (const int seconds : {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}) {
    schedule.Started(now);
    schedule.Lost(now);
    EXPECT_EQ(schedule.pause_ns(), seconds * kSecond);
    EXPECT_FALSE(schedule.Due(now + seconds * kSecond - 1));
    now += seconds * kSecond;
    EXPECT_TRUE(schedule.Due(now));
  }
}

TEST(RestartSchedule, OneThatHasRunForAWhileIsHealedAtOnceAgain) {
  RestartSchedule schedule;
  schedule.Lost(0);
  schedule.Started(0);
  schedule.Lost(0);
  schedule.Started(kSecond);
  const std::int64_t months = 100 * 24 * 3600 * kSecond;
  schedule.Lost(months);
  EXPECT_TRUE(schedule.Due(months));
  schedule.Started(months);
  schedule.Lost(months);
  EXPECT_FALSE(schedule.Due(months)) << "the first pause again";
  EXPECT_TRUE(schedule.Due(months + RestartSchedule::kFirstPauseNs));
}

}  // namespace
}  // namespace foretoken
