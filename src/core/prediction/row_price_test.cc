#include "core/prediction/row_price.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/numbers/integers.h"

namespace foretoken {
namespace {

// The price of a sequence's `n`-th proposal token.
double Of(const RowPrice& price, int n, double other_rows) {
  std::vector<double> prices(n);
  price.Fill(other_rows, prices);
  return prices.back();
}
double Of(const RowPrice& price, int n) { return Of(price, n, price.other_rows()); }

TEST(RowPrice, FlatPassesCostNextToNothing) {
  RowPrice price(TimeTable::Line(100, 0));
  EXPECT_DOUBLE_EQ(Of(price, 1), 0.01);
  for (int i = 0; i < 100; ++i) price.Observe({8, 8, 0, 8, 100, 110});
  EXPECT_DOUBLE_EQ(Of(price, 1), 0.01);
}

TEST(RowPrice, IsTheRowsTimeAtTheRateOfTheMoment) {
  RowPrice price(TimeTable::Line(90, 10));
  EXPECT_NEAR(Of(price, 1), 0.1, 1e-12);
  // 8 rows take 170 us of a round of 200 us that emits 12 tokens: a row of 10 us is worth 0.6.
  for (int i = 0; i < 1000; ++i) price.Observe({8, 8, 0, 12, 170, 200});
  EXPECT_NEAR(Of(price, 1), 0.6, 1e-6);
  // A machine that has become slower changes nothing, but for a trace of the moment of change.
  for (int i = 0; i < 1000; ++i) price.Observe({8, 8, 0, 12, 340, 400});
  EXPECT_NEAR(Of(price, 1), 0.6, 0.005);
  for (int i = 0; i < 1000; ++i) price.Observe({8, 8, 0, 80, 170, 200});
  EXPECT_NEAR(Of(price, 1), 4, 0.02);
}

// Free up to four rows, then 25 us each.
TEST(RowPrice, KnowsWhichRowIsTheFirstThatCosts) {
  const std::array rows = {1, 4, 8};
  const std::array contexts = {64};
  const std::array<double, 3> us = {100, 100, 200};
  const TimeTable table = *TimeTable::Make(rows, contexts, us);
  RowPrice alone(table);
  EXPECT_DOUBLE_EQ(Of(alone, 3), 0.01);
  EXPECT_NEAR(Of(alone, 4), 0.25, 1e-12);
  RowPrice three(table);
  for (int i = 0; i < 100; ++i) three.Observe({3, 3, 0, 3, 100, 100});
  EXPECT_DOUBLE_EQ(Of(three, 1), 0.01);
  EXPECT_NEAR(Of(three, 2), 0.75, 1e-9);
  // Where it is known that the others have three rows now.
  EXPECT_NEAR(Of(three, 1, 3), 0.75, 1e-9);
  EXPECT_DOUBLE_EQ(Of(three, 3, 0), 0.01);
}

// Measured in a noisy moment, 12 rows seem to take what 8 take; in truth they take 1.5 times that.
TEST(RowPrice, PassesSeenCorrectTheTable) {
  const std::array rows = {4, 8, 12};
  const std::array contexts = {64};
  const std::array<double, 3> us = {100, 200, 200};
  RowPrice price(*TimeTable::Make(rows, contexts, us));
  EXPECT_DOUBLE_EQ(Of(price, 1, 7), 0.01);
  for (int i = 0; i < 1000; ++i) {
    const bool more = i % 2 == 0;
    const double round_us = more ? 300 : 200;
    price.Observe({8, more ? 12 : 8, 0, 10, round_us, round_us});
  }
  // 25 us a row of rounds that take 250 us in the mean for 10 tokens.
  for (int n = 1; n <= 4; ++n) EXPECT_NEAR(Of(price, n, 7), 1, 0.05);
  std::array<double, 4> prices{};
  price.Fill(7, prices);
  for (int n = 1; n <= 4; ++n) {
    EXPECT_DOUBLE_EQ(prices[n - 1], Of(price, n, 7));
  }
}

// Weights are read once for all rows of a pass, keys and values are multiplied for each.
TEST(RowPrice, RowsBehindALongContextCost) {
  const std::array rows = {1, 8};
  const std::array contexts = {64, 8192};
  const std::array<double, 4> us = {100, 200, 100, 900};
  const TimeTable table = *TimeTable::Make(rows, contexts, us);
  RowPrice price(table);
  for (int i = 0; i < 300; ++i) price.Observe({1, 1, 64, 1, 100, 100});
  EXPECT_DOUBLE_EQ(Of(price, 4), 0.01);
  for (int i = 0; i < 300; ++i) price.Observe({1, 1, 8192, 1, 200, 200});
  EXPECT_NEAR(price.context(), 8192, 10);
  EXPECT_NEAR(Of(price, 4), 0.5, 0.01);  // 100 us more, where a token takes 200.
}

// The rule's point: taking the candidates that are worth the price, round after round, comes to the
// number that gives the most tokens over time.
TEST(RowPrice, LeadsToTheFastestProposal) {
  const std::array<double, 8> chances = {0.9, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05};
  for (const double row_us : {1.0, 5.0, 10.0, 20.0, 50.0}) {
    const TimeTable table = TimeTable::Line(100, row_us);
    const auto rate = [&](std::size_t nodes) {
      double tokens = 1;
      for (std::size_t i = 0; i < nodes; ++i) tokens += chances[i];
      return tokens / table.us(1 + static_cast<double>(nodes), 0);
    };
    std::size_t best = 0;
    for (std::size_t nodes = 1; nodes <= chances.size(); ++nodes) {
      if (rate(nodes) > rate(best)) best = nodes;
    }
    RowPrice price(table);
    std::size_t taken = 0;
    for (int round = 0; round < 500; ++round) {
      taken = 0;
      while (taken < chances.size() && chances[taken] >= Of(price, Int(taken) + 1)) {
        ++taken;
      }
      const double us = table.us(1 + static_cast<double>(taken), 0);
      price.Observe({1, static_cast<int>(1 + taken), 0, rate(taken) * us, us, us});
    }
    EXPECT_GE(rate(taken), 0.95 * rate(best)) << row_us << " us a row: " << taken << " of " << best;
  }
}

}  // namespace
}  // namespace foretoken
