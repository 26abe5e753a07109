#include "ssd/row_cost.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

TEST(RowCost, LearnsBaseAndSlope) {
  RowCost cost;
  for (int i = 0; i < 300; ++i) {
    const int rows = 1 + i * 7 % 30;
    cost.Add(rows, 1500 + 200 * rows + (i % 3 - 1) * 20);
  }
  EXPECT_NEAR(cost.base_ns(), 1500, 60);
  EXPECT_NEAR(cost.per_row_ns(), 200, 5);
  // The machine changes: the old figures fade.
  for (int i = 0; i < 600; ++i) cost.Add(1 + i * 7 % 30, 3000);
  EXPECT_NEAR(cost.base_ns(), 3000, 100);
  EXPECT_NEAR(cost.per_row_ns(), 0, 5);
}

TEST(RowCost, TakesEverythingWhereRowsAreFree) {
  const std::vector<double> values = {0.3, 0.2, 0.1, 1e-3, 1e-6};
  RowCost cost;
  EXPECT_EQ(cost.Choose(values, 0), 5);  // Nothing known yet.
  for (int i = 0; i < 100; ++i) cost.Add(1 + i % 20, 2000);
  EXPECT_EQ(cost.Choose(values, 3), 5);
  EXPECT_EQ(cost.Choose({}, 3), 0);
}

TEST(RowCost, TakesTheBestValuePerTimeWhereRowsCost) {
  RowCost cost;
  for (int i = 0; i < 300; ++i) cost.Add(1 + i % 20, 1000 + 500 * (1 + i % 20));
  const std::vector<double> values = {0.5, 0.2, 0.15, 0.02, 0.01};
  const std::size_t chosen = cost.Choose(values, 0);
  double best = 0;
  std::size_t expected = 0;
  double value = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    value += values[i];
    const double rate = value / (1000 + 500.0 * (i + 1));
    if (rate > best) {
      best = rate;
      expected = i + 1;
    }
  }
  EXPECT_EQ(chosen, expected);
  EXPECT_LT(chosen, 5);
  EXPECT_GE(chosen, 1);
}

}  // namespace
}  // namespace foretoken
