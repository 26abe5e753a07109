#include "core/backend/cpu/measure.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(Measure, BandwidthIsThatOfAMachine) {
  Device device({AvailableCores().front()});
  const double bandwidth = MeasureReadBandwidth(&device);
  EXPECT_GT(bandwidth, 0.1);
  EXPECT_LT(bandwidth, 10'000.0);
}

TEST(Measure, MatMulCostsAreOfTheRowsAskedFor) {
  Device device({AvailableCores().front()});
  const auto backend = device.MakeBackend(Precision::kBF16);
  const int counts[] = {1, 16};
  const std::vector<MatMulCost> costs = MeasureMatMulCosts(backend.get(), counts);
  ASSERT_EQ(costs.size(), 2U);
  EXPECT_EQ(costs[1].rows, 16);
  EXPECT_GT(costs[0].seconds, 0.0);
  EXPECT_GT(costs[1].seconds, 0.0);
}

}  // namespace
}  // namespace foretoken
