#include "core/prediction/branch_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/prediction/estimates.h"

namespace foretoken {
namespace {

std::size_t Choose(const std::vector<double>& values, int fixed, const LineEstimate& times) {
  return MostForItsTime(
             values.size(), [&](std::size_t i) { return values[i]; },
             [&](std::size_t rows) { return times.us(static_cast<double>(fixed + rows)); })
      .count;
}

TEST(MostForItsTime, TakesEverythingWhereRowsAreFree) {
  const std::vector<double> values = {0.3, 0.2, 0.1, 1e-3, 1e-6};
  LineEstimate times;
  EXPECT_EQ(Choose(values, 0, times), 5);  // Nothing known yet.
  for (int i = 0; i < 100; ++i) times.Add(1 + i % 20, 2000);
  EXPECT_EQ(Choose(values, 3, times), 5);
  EXPECT_EQ(Choose({}, 3, times), 0);
}

TEST(MostForItsTime, TakesTheBestValuePerTimeWhereRowsCost) {
  LineEstimate times;
  for (int i = 0; i < 300; ++i) times.Add(1 + i % 20, 1000 + 500 * (1 + i % 20));
  const std::vector<double> values = {0.5, 0.2, 0.15, 0.02, 0.01};
  const std::size_t chosen = Choose(values, 0, times);
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
