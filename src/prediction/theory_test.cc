#include "prediction/theory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace foretoken::theory {
namespace {

// NOLINTBEGIN(readability-identifier-naming): the paper's symbols.

using Law = std::vector<double>;

// Every formula is held against a simulation of what it describes. `kTolerance` is more than four
// standard errors of the means taken below, relative.
constexpr int kRounds = 200'000;
constexpr double kTolerance = 0.02;

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  double Uniform() { return uniform_(random_); }
  bool Chance(double p) { return Uniform() < p; }
  std::size_t Draw(const Law& law) {
    double u = Uniform();
    for (std::size_t x = 0; x + 1 < law.size(); ++x) {
      if (u < law[x]) return x;
      u -= law[x];
    }
    return law.size() - 1;
  }
  Law RandomLaw(int size) {
    Law law;
    double sum = 0;
    for (int i = 0; i < size; ++i) sum += law.emplace_back(-std::log(1 - Uniform()));
    for (double& p : law) p /= sum;
    return law;
  }
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

Law ResidualLaw(const Law& p, const Law& q) {
  Law law;
  double sum = 0;
  for (std::size_t x = 0; x < p.size(); ++x) sum += law.emplace_back(std::max(p[x] - q[x], 0.0));
  for (double& r : law) r /= sum;
  return law;
}

TEST(Theory, AcceptanceRateIsThatOfRejectionSampling) {
  Dice dice(1);
  const Law p = dice.RandomLaw(12);
  const Law q = dice.RandomLaw(12);
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::size_t x = dice.Draw(q);
    accepted += dice.Chance(std::min(1.0, p[x] / q[x]));
  }
  EXPECT_NEAR(AcceptanceRate(p, q), double(accepted) / kRounds, 0.005);
  double l1 = 0;
  for (std::size_t x = 0; x < p.size(); ++x) l1 += std::abs(p[x] - q[x]);
  EXPECT_NEAR(AcceptanceRate(p, q), 1 - l1 / 2, 1e-12);
  EXPECT_NEAR(AcceptanceRate(p, p), 1, 1e-12);
  EXPECT_EQ(AcceptanceRate(Law{1, 0}, Law{0, 1}), 0);
}

TEST(Theory, TokensAndOutcomesOfARound) {
  Dice dice(2);
  const int K = 5;
  std::vector<int> counts(K + 1);
  double tokens = 0;
  for (int i = 0; i < kRounds; ++i) {
    const int k = dice.Accepted(0.7, K);
    ++counts[k];
    tokens += k + 1;
  }
  EXPECT_NEAR(ExpectedTokens(0.7, K), tokens / kRounds, 0.02);
  EXPECT_NEAR(ExpectedTokens(0.7, K), (1 - std::pow(0.7, K + 1)) / (1 - 0.7), 1e-12);
  for (int k = 0; k <= K; ++k) {
    EXPECT_NEAR(OutcomeProbability(0.7, K, k), double(counts[k]) / kRounds, 0.005) << k;
  }
  EXPECT_EQ(ExpectedTokens(0, 5), 1);
  EXPECT_EQ(ExpectedTokens(1, 5), 6);
  EXPECT_EQ(ExpectedTokens(0.7, 0), 1);
  EXPECT_EQ(OutcomeProbability(0, 5, 0), 1);
  EXPECT_EQ(OutcomeProbability(1, 5, 5), 1);
  EXPECT_EQ(OutcomeProbability(0.3, 0, 0), 1);
}

TEST(Theory, BestLookaheadBeatsEveryOther) {
  // A draft ten times as fast at acceptance 0.8: six tokens, 2.47 times as fast.
  const OptimalLookahead best = BestLookahead(0.8, 0.1, 20);
  EXPECT_EQ(best.K, 6);
  EXPECT_NEAR(best.speedup, 2.47, 0.005);
  for (int K = 0; K <= 20; ++K) {
    EXPECT_LE(SpeedupSd(ExpectedTokens(0.8, K), K * 0.1), best.speedup);
  }
  EXPECT_EQ(BestLookahead(0.5, 0.9, 20).K, 0);  // Such a draft is not worth its time.
  EXPECT_EQ(BestLookahead(0, 0, 20).K, 0);
  EXPECT_EQ(BestLookahead(1, 0, 20).K, 20);
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

TEST(Theory, TheSandwichHolds) {
  const double E_hit = 4;
  const double E_SD = 3.5;
  const double T_SD = 0.6;
  for (double p_hit = 0; p_hit <= 1; p_hit += 0.2) {
    const Sandwich bounds = GainBounds(p_hit, E_hit, E_SD, T_SD);
    for (const double E_miss : {1.0, 2.5, 4.0}) {
      const SsdRound round{.p_hit = p_hit, .E_hit = E_hit, .E_miss = E_miss, .T_p = 0.9};
      const double gain = SpeedupSsd(round) / SpeedupSd(E_SD, T_SD);
      EXPECT_GE(gain, bounds.lower - 1e-12);
      EXPECT_LE(gain, bounds.upper + 1e-12);
    }
  }
}

TEST(Theory, CriticalBatchIsWhereTheBackupsChangePlaces) {
  const double E_hit = 4;
  const double E_miss = 1.2;
  const double T_p = 0.8;
  for (const double p_hit : {0.4, 0.6, 0.8}) {
    const double critical = CriticalBatch(p_hit, E_hit, E_miss, T_p);
    ASSERT_TRUE(std::isfinite(critical) && critical > 1) << p_hit;
    for (int b = 1; b <= 64; ++b) {
      const double slow = SpeedupSsd({p_hit, E_hit, E_hit, T_p, T_p}, b);
      const double fast = SpeedupSsd({p_hit, E_hit, E_miss, T_p, 0}, b);
      EXPECT_EQ(slow > fast, b < critical) << p_hit << " " << b;
    }
  }
}

TEST(Theory, CriticalBatchIsClamped) {
  const double always = std::numeric_limits<double>::infinity();
  EXPECT_EQ(CriticalBatch(0.5, 4, 1, 0.1), always);  // Waiting costs less than it brings.
  EXPECT_EQ(CriticalBatch(0.5, 2, 2, 0.5), 0);       // As good, and at once.
  EXPECT_EQ(CriticalBatch(0.5, 2, 3, 0.5), 0);       // Better, and at once.
  EXPECT_EQ(CriticalBatch(0.5, 4, 2, 0), always);    // Nothing to wait for.
  EXPECT_EQ(CriticalBatch(0.5, 2, 3, 0), 0);
  EXPECT_EQ(CriticalBatch(1, 4, 1, 0.5), always);
  EXPECT_EQ(CriticalBatch(0, 4, 3, 0.5), 0);
  EXPECT_EQ(CriticalBatch(0, 4, 1, 0.5), always);
}

// The paper's hit rate at real fan-outs: sum_k P(k) (1 - F_k^-r).
double PowerLawHitRate(const std::vector<double>& F, double a, double r) {
  const int K = static_cast<int>(F.size()) - 1;
  double rate = 0;
  for (int k = 0; k <= K; ++k) rate += OutcomeProbability(a, K, k) * (1 - std::pow(F[k], -r));
  return rate;
}

TEST(Theory, GeometricFanoutIsTheBestOfItsNeighbours) {
  const double r = 0.6;
  const int K = 7;
  const std::vector<double> F = GeometricFanout(0.8, r, K, 24);
  double sum = 0;
  for (const double fanout : F) sum += fanout;
  EXPECT_NEAR(sum, 24, 1e-9);
  EXPECT_NEAR(F[0], 4.1, 0.05);
  EXPECT_NEAR(F[1], 3.6, 0.05);
  EXPECT_NEAR(F[6], 1.8, 0.05);
  EXPECT_NEAR(F[7], 4.2, 0.05);  // The end of the proposal is the likeliest outcome.
  const double best = PowerLawHitRate(F, 0.8, r);
  for (int i = 0; i <= K; ++i) {
    for (int j = 0; j <= K; ++j) {
      if (i == j) continue;
      std::vector<double> other = F;
      other[i] += 0.05;
      other[j] -= 0.05;
      EXPECT_LT(PowerLawHitRate(other, 0.8, r), best) << i << " " << j;
    }
  }
  // Theorem 12 is Theorem 18 where the slope of the hit rate is r F^(-r-1).
  for (int k = 0; k <= K; ++k) {
    const double slope = std::pow(F[k], -r - 1) / std::pow(F[0], -r - 1);
    EXPECT_NEAR(slope, OptimalSlopeRatio(0.8, K, k), 1e-9 * slope);
  }
}

TEST(Theory, GeometricFanoutInTheLimits) {
  EXPECT_EQ(GeometricFanout(1, 0.5, 3, 12), (std::vector<double>{0, 0, 0, 12}));
  EXPECT_EQ(GeometricFanout(0, 0.5, 3, 12), (std::vector<double>{12, 0, 0, 0}));
  EXPECT_EQ(GeometricFanout(0.5, 0.5, 0, 12), (std::vector<double>{12}));
}

TEST(Theory, ResidualHitRateIsThatOfRejectionSampling) {
  Dice dice(5);
  const Law p = dice.RandomLaw(10);
  const Law q = dice.RandomLaw(10);
  const int F = 3;
  Law sorted = q;
  std::sort(sorted.rbegin(), sorted.rend());
  for (const double C : {1.0, 0.3, 0.0}) {
    const Law law = SaguaroLaw(q, F, C);
    const Law residual = ResidualLaw(p, law);
    int rejected = 0;
    int hits = 0;
    int real_hits = 0;
    for (int i = 0; i < 2 * kRounds; ++i) {
      const std::size_t x = dice.Draw(law);
      if (dice.Chance(std::min(1.0, p[x] / law[x]))) continue;
      ++rejected;
      const double bonus = q[dice.Draw(residual)];
      hits += bonus >= sorted[F - 1];
      // The cache of a real speculator skips the token it drew.
      real_hits += bonus >= sorted[q[x] >= sorted[F - 1] ? F : F - 1];
    }
    EXPECT_NEAR(ResidualHitRate(p, q, F, C), double(hits) / rejected, 0.015) << C;
    EXPECT_NEAR(HitRateAfterRejection(p, q, F, C), double(real_hits) / rejected, 0.015) << C;
  }
}

TEST(Theory, ResidualHitRateRisesAsCFalls) {
  Dice dice(6);
  for (int trial = 0; trial < 50; ++trial) {
    const Law p = dice.RandomLaw(16);
    const Law q = dice.RandomLaw(16);
    double last = 0;
    for (double C = 1; C >= 0; C -= 0.0625) {
      const double rate = ResidualHitRate(p, q, 4, C);
      EXPECT_GE(rate, last - 1e-12) << C;
      last = rate;
    }
  }
  const Law q = {0.25, 0.75};
  EXPECT_EQ(ResidualHitRate(q, q, 1, 1), 1);  // Nothing is rejected.
  EXPECT_EQ(SaguaroLaw(q, 2, 0), q);          // No mass outside the cached tokens.
  EXPECT_EQ(SaguaroLaw(q, 1, 0), (Law{1, 0}));
}

TEST(Theory, Construction1OfTheorem19) {
  const Law p_t = {0.48, 0.48, 0.02, 0.02};
  const Law p_d = {0.49, 0.49, 0.01, 0.01};
  const double C = 47.0 / 147;
  const Law biased = SaguaroLaw(p_d, 2, C);
  EXPECT_NEAR(biased[0], 0.47, 1e-12);
  EXPECT_NEAR(biased[2], 0.03, 1e-12);
  EXPECT_NEAR(AcceptanceRate(p_t, p_d), 0.98, 1e-12);
  EXPECT_NEAR(AcceptanceRate(p_t, biased), 0.98, 1e-12);
  EXPECT_NEAR(HitRateAfterRejection(p_t, p_d, 2, 1), 0.5, 1e-12);
  EXPECT_NEAR(HitRateAfterRejection(p_t, p_d, 2, C), 1, 1e-12);
}

TEST(Theory, OverheadCountsTheDraftsTokens) {
  const int B = 4;
  const int K = 5;
  const int F = 3;
  int tokens = 0;  // Appendix C: each of K draft steps decodes B (K + 1) F tokens.
  for (int step = 0; step < K; ++step) {
    for (int branch = 0; branch < B * (K + 1) * F; ++branch) ++tokens;
  }
  const SsdOverhead overhead = Overhead(B, K, F, 1000, 0.1, 2);
  EXPECT_EQ(overhead.draft_tokens_ssd, tokens);
  EXPECT_EQ(overhead.draft_tokens_sd, B * K);
  EXPECT_NEAR(overhead.flops_ssd / overhead.flops_sd, (K + 1) * F, 1e-9);
  EXPECT_EQ(overhead.cache_bytes, tokens * (4 + 2000.0));
  EXPECT_EQ(overhead.proposal_bytes, B * K * (4 + 2000.0));
  EXPECT_EQ(Overhead(B, K, F, 1000, 0.1, 0).proposal_bytes, B * K * 4);
  EXPECT_EQ(overhead.outcome_bytes, B * 8);
}

// NOLINTEND(readability-identifier-naming)

}  // namespace
}  // namespace foretoken::theory
