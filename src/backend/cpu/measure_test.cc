#include "backend/cpu/measure.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(Measure, BandwidthIsThatOfAMachine) {
  const std::vector<int> available = AvailableCores();
  const ReadBandwidth bandwidth = MeasureReadBandwidth({available[0]});
  EXPECT_GT(bandwidth.one_core, 0.1);
  EXPECT_LT(bandwidth.one_core, 10'000.0);
  EXPECT_EQ(bandwidth.all_cores, bandwidth.one_core);
}

TEST(Measure, MatMulCostsAreRatiosToOneRow) {
  auto backend = MakeCpuBackend(CpuBackendOptions{});
  const int counts[] = {1, 16};
  const std::vector<MatMulCost> costs = MeasureMatMulCosts(backend.get(), counts);
  ASSERT_EQ(costs.size(), 2U);
  EXPECT_EQ(costs[1].rows, 16);
  EXPECT_GT(costs[0].seconds, 0.0);
  EXPECT_GT(costs[1].ratio, 0.0);
}

}  // namespace
}  // namespace foretoken
