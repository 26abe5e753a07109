#include "core/draft/model/chance_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace foretoken {
namespace {

Ranking Of(const std::vector<double>& scores, float temperature) {
  Ranking ranking;
  for (std::size_t i = 0; i < scores.size(); ++i) ranking.push_back({static_cast<Token>(i)});
  SetLogOdds(scores, temperature, &ranking);
  return ranking;
}

TEST(LogOdds, AreThoseOfASoftmaxOverLogits) {
  const Ranking greedy = Of({std::log(6.0), std::log(3.0), 0.0}, 0);
  EXPECT_NEAR(greedy[0].log_odds, std::log(6.0 / 4), 1e-6);
  EXPECT_NEAR(greedy[1].log_odds, std::log(3.0 / 7), 1e-6);
  EXPECT_NEAR(greedy[2].log_odds, std::log(1.0 / 9), 1e-6);
  // Noisy scores z / T + g are T times less apart in logits.
  const Ranking noisy = Of({2 * std::log(6.0), 2 * std::log(3.0), 0.0}, 0.5F);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(noisy[i].log_odds, greedy[i].log_odds, 1e-6);
}

TEST(LogOdds, AreFiniteHoweverFarApart) {
  for (const RankedToken& ranked : Of({1e30, 5, -1e30}, 1)) {
    EXPECT_TRUE(std::isfinite(ranked.log_odds));
  }
  EXPECT_GT(Of({1e30, 5}, 1)[0].log_odds, 10);
  EXPECT_GT(Of({3}, 1)[0].log_odds, 10);  // No other token is possible.
  EXPECT_TRUE(Of({}, 1).empty());
}

TEST(ChanceTable, BeginsNearTheOddsAndLearnsWhatComesTrue) {
  ChanceTable table(1);
  const Ranking ranking = Of({3, 2, 0, -2}, 1);
  double before = 1;
  for (const RankedToken& ranked : ranking) {
    const double said = 1 / (1 + std::exp(-ranked.log_odds));
    EXPECT_NEAR(table.Chance(ranked.log_odds), said, 0.1);
    EXPECT_LT(table.Chance(ranked.log_odds), before);
    before = table.Chance(ranked.log_odds);
  }
  for (int i = 0; i < 3000; ++i) table.Observe(ranking, i % 10 < 4 ? 0 : i % 10 < 7 ? 1 : 99);
  EXPECT_NEAR(table.Chance(ranking[0].log_odds), 0.4, 0.02);
  EXPECT_NEAR(table.Chance(ranking[1].log_odds), 0.3, 0.02);
  EXPECT_NEAR(table.Chance(ranking[2].log_odds), 0, 0.01);
}

TEST(ChanceTable, NoTokenHasABetterChanceThanOneBeforeIt) {
  ChanceTable table(1);
  const Ranking ranking = Of({3, 2, 0, -2}, 1);
  for (int i = 0; i < 1000; ++i) table.Observe(ranking, 1);
  EXPECT_GT(table.Chance(ranking[1].log_odds), table.Chance(ranking[0].log_odds));
  const auto chances = ChancesOf(table, ranking, 3);
  ASSERT_EQ(chances.size(), 3U);
  EXPECT_EQ(chances[0], table.Chance(ranking[0].log_odds));
  EXPECT_LE(chances[1], chances[0]);
  EXPECT_LE(chances[2], chances[1]);
}

}  // namespace
}  // namespace foretoken
