#include "ssd/outcome_predictor.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(OutcomePredictor, NodeProbabilitiesSumToOne) {
  OutcomePredictor predictor;
  for (int round = 0; round < 50; ++round) {
    predictor.AddAcceptance(6, round % 7);
    double sum = 0;
    for (int node = 0; node <= 6; ++node) sum += predictor.NodeProbability(6, node);
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_EQ(predictor.NodeProbability(0, 0), 1);
  }
}

TEST(OutcomePredictor, LearnsTheAcceptanceRate) {
  OutcomePredictor predictor;
  for (int round = 0; round < 200; ++round) predictor.AddAcceptance(4, 4);
  EXPECT_GT(predictor.acceptance(), 0.99);
  for (int round = 0; round < 200; ++round) predictor.AddAcceptance(4, 0);
  EXPECT_LT(predictor.acceptance(), 0.01);
}

TEST(OutcomePredictor, LearnsRanksApartForRejectedAndFull) {
  OutcomePredictor predictor;
  for (int round = 0; round < 200; ++round) {
    predictor.AddBonus(true, 0);
    predictor.AddBonus(false, round % 2 == 0 ? 2 : -1);
  }
  EXPECT_GT(predictor.RankProbability(true, 0), 0.99);
  EXPECT_LT(predictor.RankProbability(false, 0), 0.01);
  EXPECT_NEAR(predictor.RankProbability(false, 2), 0.5, 0.05);
}

}  // namespace
}  // namespace foretoken
