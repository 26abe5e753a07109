#include "core/backend/device.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace foretoken {
namespace {

TEST(DeviceTest, NamesItselfByItsCores) {
  EXPECT_EQ(Device({0}).name(), "cores 0");
  EXPECT_EQ(Device({0, 1}).name(), "cores 0-1");
}

TEST(DeviceTest, OverlapsCoresOfWhichItHasOne) {
  const Device device({0, 1});
  EXPECT_TRUE(device.Overlaps({1, 2}));
  EXPECT_FALSE(device.Overlaps({2, 3}));
  EXPECT_FALSE(device.Overlaps({}));
}

TEST(DeviceTest, MakesTheFastestBackendOfBothPrecisions) {
  Device device({AvailableCores().front()});
  for (const Precision precision : {Precision::kBF16, Precision::kF32}) {
    const auto backend = device.MakeBackend(precision);
    EXPECT_EQ(backend->name().substr(0, 4), "cpu/");
    EXPECT_EQ(backend->precision(), precision);
  }
  EXPECT_NE(device.MakeBackend(Precision::kBF16)->layout(),
            device.MakeBackend(Precision::kF32)->layout());
}

TEST(DeviceTest, RunsWorkOnItsFirstCoreAndLeavesTheCallerWhereItWas) {
  const int core = AvailableCores().back();
  Device device({core});
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(device.Run([] { return sched_getcpu(); }), core);
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace foretoken
