#include "speculation/outcome_predictor.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

double Sum(const OutcomePredictor& predictor, bool leaf) {
  double sum = 0;
  for (int i = 0; i < kMaxRanking; ++i) sum += predictor.Probability(leaf, i);
  return sum;
}

TEST(OutcomePredictor, ProbabilitiesNeverSumToMoreThanOne) {
  OutcomePredictor predictor;
  for (int round = 0; round < 100; ++round) {
    EXPECT_LE(Sum(predictor, false), 1 + 1e-12);
    EXPECT_LE(Sum(predictor, true), 1 + 1e-12);
    predictor.Observe(round % 3 == 0, round % 7 - 1);
  }
  EXPECT_EQ(predictor.Probability(true, kMaxRanking), 0);
}

TEST(OutcomePredictor, LearnsTheAcceptanceRate) {
  OutcomePredictor predictor;
  for (int round = 0; round < 200; ++round) predictor.Observe(false, 0);
  EXPECT_GT(predictor.acceptance(), 0.99);
  for (int round = 0; round < 200; ++round) predictor.Observe(false, -1);
  EXPECT_LT(predictor.acceptance(), 0.01);
}

TEST(OutcomePredictor, LearnsCandidatesApartForInnerNodesAndLeaves) {
  OutcomePredictor predictor;
  for (int round = 0; round < 200; ++round) {
    predictor.Observe(true, 0);
    predictor.Observe(false, round % 2 == 0 ? 0 : 3);
  }
  EXPECT_GT(predictor.Probability(true, 0), 0.99);
  EXPECT_NEAR(predictor.Probability(false, 0), 0.5, 0.05);
  EXPECT_LT(predictor.Probability(false, 1), 0.01);
  EXPECT_NEAR(predictor.Probability(false, 3), 0.5, 0.05);
}

}  // namespace
}  // namespace foretoken
