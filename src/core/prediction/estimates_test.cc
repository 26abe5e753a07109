#include "core/prediction/estimates.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

StaticVector<int, RowRatios::kMaxPoints> Points() {
  StaticVector<int, RowRatios::kMaxPoints> points;
  for (const int rows : {1, 4, 16}) points.push_back(rows);
  return points;
}

TEST(RowRatios, WhatWasNotSeenLeansOnTheMean) {
  RowRatios ratios(Points(), 1.05, 8);
  EXPECT_DOUBLE_EQ(ratios.At(1), 1.05);
  for (int i = 0; i < 1000; ++i) ratios.Add(4, 1.5);
  EXPECT_NEAR(ratios.At(5), 1.5, 0.01);
  EXPECT_NEAR(ratios.At(16), 1.5, 0.01);
  for (int i = 0; i < 1000; ++i) ratios.Add(16, 0.9);
  EXPECT_NEAR(ratios.At(4), 1.5, 0.01);
  EXPECT_NEAR(ratios.At(16), 0.9, 0.01);
  EXPECT_NEAR(ratios.At(1), 1.2, 0.01);
}

TEST(RowRatios, OptimismIsForWhatWasNotSeen) {
  RowRatios ratios(Points(), 1, 4);
  for (int i = 0; i < 396; ++i) ratios.Add(4, 1);
  const auto hoped = ratios.All(0.03);
  ASSERT_EQ(hoped.size(), 3U);
  EXPECT_NEAR(hoped[0], 0.97, 1e-9);
  EXPECT_NEAR(hoped[1], 0.997, 1e-9);
  EXPECT_NEAR(hoped[2], 0.97, 1e-9);
}

// What is no longer seen comes back to what is believed of all.
TEST(RowRatios, Decay) {
  RowRatios ratios(Points(), 1, 4);
  for (int i = 0; i < 100; ++i) ratios.Add(16, 2);
  for (int i = 0; i < 5000; ++i) ratios.Decay(0.99);
  EXPECT_NEAR(ratios.At(16), 1, 1e-6);
}

TEST(TimeEstimate, CorrectsTheTableWherePassesWereSeen) {
  TimeEstimate times(TimeTable::Line(100, 10));
  const double before = times.us(1, 0);
  EXPECT_DOUBLE_EQ(before, 110);
  for (int i = 0; i < 1000; ++i) times.Add(1, 0, 220);
  EXPECT_NEAR(times.us(1, 0), 220, 1);
  EXPECT_NEAR(times.Table().us(1, 0), 220, 1);
  // Held up by something else, it counts as thrice as long.
  times.Add(1, 0, 1e9);
  EXPECT_LT(times.us(1, 0), 222);
}

TEST(LineEstimate, LearnsBaseAndSlope) {
  LineEstimate times;
  for (int i = 0; i < 300; ++i) {
    const int rows = 1 + i * 7 % 30;
    times.Add(rows, 1500 + 200 * rows + (i % 3 - 1) * 20);
  }
  EXPECT_NEAR(times.us(0), 1500, 60);
  EXPECT_NEAR(times.us(1) - times.us(0), 200, 5);
  // The machine changes: the old figures decay.
  for (int i = 0; i < 600; ++i) times.Add(1 + i * 7 % 30, 3000);
  EXPECT_NEAR(times.us(0), 3000, 100);
  EXPECT_NEAR(times.us(1) - times.us(0), 0, 5);
}

}  // namespace
}  // namespace foretoken
