#include "core/prediction/fanout_solver.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/prediction/theory_testing.h"

namespace foretoken {
namespace {

TEST(HitCurve, FitFindsThePowerLaw) {
  const PowerLaw law{.c = 0.57, .r = 0.41};
  std::vector<double> hit;
  for (int fanout = 1; fanout <= 8; ++fanout) hit.push_back(1 - law.Miss(fanout));
  const PowerLaw fit = FitPowerLaw(hit);
  EXPECT_NEAR(fit.c, law.c, 1e-9);
  EXPECT_NEAR(fit.r, law.r, 1e-9);

  // From counts, as a calibration gets them.
  std::mt19937_64 random(3);
  const int samples = 20'000;
  for (double& rate : hit) {
    rate = double(std::binomial_distribution<int>(samples, rate)(random)) / samples;
  }
  const PowerLaw noisy = FitPowerLaw(hit);
  EXPECT_NEAR(noisy.c, law.c, 0.01);
  EXPECT_NEAR(noisy.r, law.r, 0.02);
}

TEST(HitCurve, FitOfFewOrPerfectPoints) {
  EXPECT_EQ(FitPowerLaw({}).c, 0);
  EXPECT_EQ(FitPowerLaw(std::vector<double>{1, 1}).Miss(1), 0);
  const PowerLaw flat = FitPowerLaw(std::vector<double>{0.4});
  EXPECT_NEAR(flat.Miss(1), 0.6, 1e-12);
  EXPECT_EQ(flat.r, 0);
  EXPECT_EQ(FitPowerLaw(std::vector<double>{0.5, 0.4}).r, 0);  // Falling: noise.
}

void ExpectConcave(const HitCurve& curve) {
  EXPECT_EQ(curve.hit(0), 0);
  EXPECT_LE(curve.hit(kMaxFanout), 1);
  for (int fanout = 1; fanout <= kMaxFanout; ++fanout) {
    EXPECT_GE(curve.gain(fanout), 0) << fanout;
    if (fanout > 1) {
      EXPECT_LE(curve.gain(fanout), curve.gain(fanout - 1) + 1e-12) << fanout;
    }
  }
}

TEST(HitCurve, KeepsWhatWasMeasuredAndExtendsIt) {
  const std::vector<double> hit = {0.45, 0.55, 0.60, 0.64};
  const HitCurve curve = HitCurve::FromMeasured(hit);
  for (int fanout = 1; fanout <= 4; ++fanout)
    EXPECT_NEAR(curve.hit(fanout), hit[fanout - 1], 1e-12);
  EXPECT_GT(curve.hit(5), 0.65);
  EXPECT_LT(curve.hit(5), 0.68);
  ExpectConcave(curve);
  EXPECT_EQ(HitCurve().hit(kMaxFanout), 0);
  EXPECT_EQ(HitCurve::FromMeasured({}).hit(3), 0);
}

TEST(HitCurve, IsConcaveWhateverWasMeasured) {
  ExpectConcave(HitCurve::FromMeasured(std::vector<double>{0.3, 0.2, 0.9, 0.8}));
  ExpectConcave(HitCurve::FromPowerLaw({.c = 1, .r = 0.6}));  // Definition 11: no hit at F = 1.
  ExpectConcave(HitCurve::FromPowerLaw({.c = 0, .r = 0}));
  ExpectConcave(HitCurve::FromPowerLaw({.c = 3, .r = 2}));
  EXPECT_NEAR(HitCurve::FromPowerLaw({.c = 1, .r = 0.6}).hit(8), 1 - std::pow(8, -0.6), 1e-12);
}

TEST(OutcomeNodes, IsTheDistributionOfTheDeepestAcceptedNode) {
  const NodeDistribution nodes = OutcomeNodes(std::vector<double>{0.9, 0.5}, 4);
  const std::vector<double> expected = {0.1, 0.45, 0.225, 0.1125, 0.1125};
  ASSERT_EQ(nodes.size(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(nodes[k], expected[k], 1e-12);
  EXPECT_EQ(OutcomeNodes(std::vector<double>{0.9}, 0)[0], 1);
}

HitCurves RandomCurves(std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform;
  const auto curve = [&] {
    return HitCurve::FromPowerLaw({.c = 0.2 + 0.7 * uniform(random), .r = 2 * uniform(random)});
  };
  return {.partial = curve(), .full = curve()};
}

// The highest hit probability of any fan-outs for the nodes from `node` on.
double BestByEnumeration(const NodeDistribution& nodes, const HitCurves& curves, int node,
                         int budget) {
  const int proposal = std::ssize(nodes) - 1;
  double best = 0;
  for (int fanout = 0; fanout <= std::min(budget, kMaxFanout); ++fanout) {
    const double here = nodes[node] * curves.at(node, proposal).hit(fanout);
    const double rest =
        node < proposal ? BestByEnumeration(nodes, curves, node + 1, budget - fanout) : 0;
    best = std::max(best, here + rest);
  }
  return best;
}

TEST(SolveFanout, IsOptimal) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform;
  for (int trial = 0; trial < 60; ++trial) {
    const int K = 1 + static_cast<int>(random() % 4);
    const int budget = 1 + static_cast<int>(random() % 12);
    const HitCurves curves = RandomCurves(random);
    const NodeDistribution nodes =
        OutcomeNodes(std::vector<double>{uniform(random), uniform(random)}, K);
    const FanoutShape shape = SolveFanout(nodes, curves, budget);
    EXPECT_EQ(shape.budget(), budget);
    EXPECT_NEAR(theory::HitProbability(shape, nodes, curves),
                BestByEnumeration(nodes, curves, 0, budget), 1e-12);
  }
}

TEST(SolveFanout, UsesTheBudgetAndBeatsUniform) {
  std::mt19937_64 random(8);
  std::uniform_real_distribution<double> uniform;
  for (int trial = 0; trial < 300; ++trial) {
    const int K = 1 + static_cast<int>(random() % 16);
    const int fanout = 1 + static_cast<int>(random() % 5);
    const HitCurves curves = RandomCurves(random);
    const std::vector<double> acceptance = {uniform(random), uniform(random), uniform(random)};
    const NodeDistribution nodes = OutcomeNodes(acceptance, K);
    const FanoutShape uniform_shape = UniformFanout(fanout, K);
    for (const FanoutShape& shape :
         {SolveFanout(nodes, curves, uniform_shape.budget()),
          GeometricFanoutShape(acceptance[0], 0.5, K, uniform_shape.budget())}) {
      EXPECT_EQ(shape.budget(), uniform_shape.budget());
      EXPECT_EQ(shape.at.size(), std::size_t(K) + 1);
      for (const int F : shape.at) EXPECT_LE(F, kMaxFanout);
    }
    EXPECT_GE(
        theory::HitProbability(SolveFanout(nodes, curves, uniform_shape.budget()), nodes, curves),
        theory::HitProbability(uniform_shape, nodes, curves) - 1e-12);
  }
}

TEST(SolveFanout, CutsABudgetThatTheNodesCannotHold) {
  // Only node 2 ever happens.
  const NodeDistribution nodes = OutcomeNodes(std::vector<double>{1.0}, 2);
  const HitCurves curves{.partial = HitCurve::FromPowerLaw({.c = 0.5, .r = 1}),
                         .full = HitCurve::FromPowerLaw({.c = 0.5, .r = 1})};
  EXPECT_EQ(SolveFanout(nodes, curves, 1000).budget(), 3 * kMaxFanout);
  EXPECT_EQ(GeometricFanoutShape(1, 0.5, 2, 1000).budget(), 3 * kMaxFanout);
  EXPECT_EQ(SolveFanout(nodes, curves, 4).at[2], 4);
  EXPECT_EQ(SolveFanout(nodes, curves, 0).budget(), 0);
}

// P(exactly k of K tokens are accepted) at acceptance rate `a` (A.2).
double OutcomeProbability(double a, int K, int k) { return std::pow(a, k) * (k < K ? 1 - a : 1); }

std::vector<double> RealFanout(double a_p, double r, int K, double B) {
  std::vector<double> F(K + 1);
  GeometricFanout(a_p, r, B, F);
  return F;
}

// The paper's hit rate at real fan-outs: sum_k P(k) (1 - F_k^-r).
double PowerLawHitRate(const std::vector<double>& F, double a, double r) {
  const int K = std::ssize(F) - 1;
  double rate = 0;
  for (int k = 0; k <= K; ++k) rate += OutcomeProbability(a, K, k) * (1 - std::pow(F[k], -r));
  return rate;
}

TEST(GeometricFanout, IsTheBestOfItsNeighbours) {
  const double r = 0.6;
  const int K = 7;
  const std::vector<double> F = RealFanout(0.8, r, K, 24);
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
  // Theorem 12 is Theorem 18, whose slopes stand as a^-k and (1 - a) a^-K, where the slope of the
  // hit rate is r F^(-r-1).
  for (int k = 0; k <= K; ++k) {
    const double slope = std::pow(F[k], -r - 1) / std::pow(F[0], -r - 1);
    const double best_slope = std::pow(0.8, -k) * (k < K ? 1 : 1 - 0.8);
    EXPECT_NEAR(slope, best_slope, 1e-9 * slope);
  }
}

TEST(GeometricFanout, InTheLimits) {
  EXPECT_EQ(RealFanout(1, 0.5, 3, 12), (std::vector<double>{0, 0, 0, 12}));
  EXPECT_EQ(RealFanout(0, 0.5, 3, 12), (std::vector<double>{12, 0, 0, 0}));
  EXPECT_EQ(RealFanout(0.5, 0.5, 0, 12), (std::vector<double>{12}));
}

TEST(GeometricFanoutShape, RoundsTheorem12) {
  // The real values are 4.1 3.6 3.1 2.7 2.4 2.0 1.8 4.2.
  const FanoutShape shape = GeometricFanoutShape(0.8, 0.6, 7, 24);
  const std::vector<int> expected = {4, 4, 3, 3, 2, 2, 2, 4};
  EXPECT_EQ(std::vector<int>(shape.at.begin(), shape.at.end()), expected);
  const std::vector<double> real = RealFanout(0.8, 0.6, 7, 24);
  for (std::size_t k = 0; k < real.size(); ++k) EXPECT_LT(std::abs(real[k] - shape.at[k]), 1) << k;
}

TEST(GeometricFanoutShape, IsNearlyTheSolversWhereItsLawHolds) {
  // A power law of misses with c < 1 has the same slopes as Definition 11's; only F = 0 differs.
  const HitCurve curve = HitCurve::FromPowerLaw({.c = 0.6, .r = 0.6});
  const HitCurves curves{.partial = curve, .full = curve};
  const NodeDistribution nodes = OutcomeNodes(std::vector<double>{0.8}, 7);
  const double solved = theory::HitProbability(SolveFanout(nodes, curves, 32), nodes, curves);
  const double geometric =
      theory::HitProbability(GeometricFanoutShape(0.8, 0.6, 7, 32), nodes, curves);
  EXPECT_GT(geometric, solved - 0.005);
  EXPECT_GT(solved, theory::HitProbability(UniformFanout(4, 7), nodes, curves) + 0.005);
}

}  // namespace
}  // namespace foretoken
