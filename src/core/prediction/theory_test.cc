#include "core/prediction/theory_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace foretoken::theory {
namespace {

// NOLINTBEGIN(readability-identifier-naming): the paper's symbols.

// Every formula is held against a simulation of what it describes. `kTolerance` is more than four
// standard errors of the means taken below, relative.
constexpr int kRounds = 200'000;
constexpr double kTolerance = 0.02;

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  double Uniform() { return uniform_(random_); }
  bool Chance(double p) { return Uniform() < p; }
  /// How many of K tokens are accepted.
  int Accepted(double a, int K) {
    int k = 0;
    while (k < K && Chance(a)) ++k;
    return k;
  }

 private:
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> uniform_;
};

TEST(Theory, TokensOfARound) {
  Dice dice(2);
  const int K = 5;
  double tokens = 0;
  for (int i = 0; i < kRounds; ++i) tokens += 1 + dice.Accepted(0.7, K);
  EXPECT_NEAR(ExpectedTokens(0.7, K), tokens / kRounds, 0.02);
  EXPECT_NEAR(ExpectedTokens(0.7, K), (1 - std::pow(0.7, K + 1)) / (1 - 0.7), 1e-12);
  EXPECT_EQ(ExpectedTokens(0, 5), 1);
  EXPECT_EQ(ExpectedTokens(1, 5), 6);
  EXPECT_EQ(ExpectedTokens(0.7, 0), 1);
}

// Tokens per unit of time of `b` sequences that decode together: a round lasts 1 + T_b if any of
// them missed, and E_hit, E_miss are given by the lookahead `K` and two acceptance rates.
double SimulateSsd(Dice& dice, const SsdRound& round, int b, int K, double a_hit, double a_miss) {
  double tokens = 0;
  double time = 0;
  for (int i = 0; i < kRounds / b; ++i) {
    bool missed = false;
    for (int sequence = 0; sequence < b; ++sequence) {
      const bool hit = dice.Chance(round.p_hit);
      missed |= !hit;
      tokens += 1 + dice.Accepted(hit ? a_hit : a_miss, K);
    }
    time += missed ? 1 + round.T_b : std::max(1.0, round.T_p);
  }
  return tokens / time / b;
}

TEST(Theory, SsdSpeedupIsThatOfItsRounds) {
  Dice dice(3);
  const int K = 6;
  for (const double T_p : {0.0, 0.6, 1.4}) {
    for (const double T_b : {0.0, 0.6}) {
      const SsdRound round{.p_hit = 0.7,
                           .E_hit = ExpectedTokens(0.8, K),
                           .E_miss = ExpectedTokens(0.3, K),
                           .T_p = T_p,
                           .T_b = T_b};
      for (const int b : {1, 4}) {
        const double simulated = SimulateSsd(dice, round, b, K, 0.8, 0.3);
        EXPECT_NEAR(SpeedupSsd(round, b) / simulated, 1, kTolerance) << T_p << T_b << b;
      }
      EXPECT_EQ(SpeedupSsd(round, 1), SpeedupSsd(round));
    }
  }
}

TEST(Theory, SsdSpeedupInTheLimits) {
  SsdRound round{.p_hit = 0.6, .E_hit = 4, .E_miss = 2, .T_p = 0.5, .T_b = 0.5};
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_NEAR(SpeedupSsd(round, infinity), 3.2 / 1.5, 1e-12);
  EXPECT_NEAR(SpeedupSsd(round, 100), SpeedupSsd(round, infinity), 1e-12);
  round.p_hit = 1;
  EXPECT_EQ(SpeedupSsd(round, 64), 4);  // Nothing but hits: drafting costs nothing.
  round.p_hit = 0;
  EXPECT_EQ(SpeedupSsd(round), SpeedupSd(2, 0.5));
}

TEST(Theory, HitRateIsTheStationaryOne) {
  Dice dice(4);
  for (const auto& [p, b] : {std::pair{0.9, 0.4}, {0.5, 0.5}, {0.2, 0.7}}) {
    int hits = 0;
    bool hit = true;
    for (int i = 0; i < kRounds; ++i) {
      hit = dice.Chance(hit ? p : b);
      hits += hit;
    }
    EXPECT_NEAR(HitRate(p, b), double(hits) / kRounds, 0.01) << p << " " << b;
  }
  EXPECT_EQ(HitRate(0.8, 0), 0);  // Nobody returns from a backup that is never a hit.
  EXPECT_EQ(HitRate(1, 0.3), 1);
  EXPECT_EQ(HitRate(1, 0), 1);
  EXPECT_EQ(HitRate(0, 1), 0.5);  // |p_hit,p - p_hit,b| = 1: it alternates.
}

TEST(Theory, SsdIsNeverSlowerThanSd) {
  for (double p_hit = 0; p_hit <= 1; p_hit += 0.25) {
    for (double T = 0; T <= 2; T += 0.25) {
      const double gain = GainOverSd(p_hit, T);
      if (p_hit > 0 && T > 0) {
        EXPECT_GT(gain, 1);
      } else {
        EXPECT_NEAR(gain, 1, 1e-12);
      }
      const SsdRound same{.p_hit = p_hit, .E_hit = 3, .E_miss = 3, .T_p = T, .T_b = T};
      EXPECT_NEAR(gain, SpeedupSsd(same) / SpeedupSd(3, T), 1e-12);
    }
  }
}

// NOLINTEND(readability-identifier-naming)

}  // namespace
}  // namespace foretoken::theory
