#include "core/speculation/outcome_predictor.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

double SumOfRanks(const OutcomePredictor& predictor, bool leaf) {
  double sum = 0;
  for (int i = 0; i < kMaxRanking; ++i) sum += predictor.Probability(leaf, i);
  return sum;
}

TEST(OutcomePredictor, ProbabilitiesNeverSumToMoreThanOne) {
  OutcomePredictor predictor;
  for (int round = 0; round < 100; ++round) {
    EXPECT_LE(SumOfRanks(predictor, false), 1 + 1e-12);
    EXPECT_LE(SumOfRanks(predictor, true), 1 + 1e-12);
    predictor.Observe(round % 3 == 0, round % 7 - 1);
  }
  EXPECT_EQ(predictor.Probability(true, kMaxRanking), 0);
}

TEST(OutcomePredictor, LearnsTheAcceptanceRate) {
  OutcomePredictor predictor;
  for (int round = 0; round < 500; ++round) predictor.Observe(false, 0);
  EXPECT_GT(predictor.acceptance(), 0.99);
  for (int round = 0; round < 500; ++round) predictor.Observe(false, -1);
  EXPECT_LT(predictor.acceptance(), 0.01);
}

TEST(OutcomePredictor, ASequenceBeginsWithWhatOthersTaught) {
  OutcomePredictor all = OutcomePredictor::OfAllSequences();
  EXPECT_EQ(all.ForSequence().Probability(true, 2), OutcomePredictor().Probability(true, 2));
  for (int round = 0; round < 3000; ++round) {
    all.Observe(false, round % 4 == 0 ? 0 : 1);
    all.Observe(true, round % 2 == 0 ? 2 : -1);
  }
  OutcomePredictor own = all.ForSequence();
  EXPECT_NEAR(own.acceptance(), 0.25, 0.01);
  EXPECT_NEAR(own.Probability(false, 1), 0.75, 0.02);
  EXPECT_NEAR(own.Probability(true, 2), 0.5, 0.01);
  for (int round = 0; round < 50; ++round) own.Observe(false, 0);
  EXPECT_GT(own.acceptance(), 0.55);  // Its own outcomes count as much by now.
  EXPECT_NEAR(all.acceptance(), 0.25, 0.01);
}

TEST(OutcomePredictor, LearnsCandidatesApartForInnerNodesAndLeaves) {
  OutcomePredictor predictor;
  for (int round = 0; round < 500; ++round) {
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
