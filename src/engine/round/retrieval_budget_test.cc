#include "engine/round/retrieval_budget.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

const SpeculationPlan kPriced{
    .mode = Mode::kSssd, .lookahead = 3, .speculation_length = kAutoSpeculationLength};

TEST(RetrievalBudget, WithoutMeasuredPassesALookaheadIsAllThatIsAsked) {
  RetrievalBudget budget({}, /*max_nodes=*/63);
  budget.SetPrices();
  EXPECT_EQ(budget.NodesOf(kPriced, 1), 3);
  EXPECT_TRUE(budget.PricesFor(kPriced).empty());
}

TEST(RetrievalBudget, PricesApplyWhereTheLengthIsLeftOpen) {
  RetrievalBudget budget({.row_times = TimeTable::Line(1, 0.1), .knee_rows = 8}, 20);
  budget.SetPrices();
  EXPECT_EQ(budget.NodesOf(kPriced, 1), 20);  // What an engine has room for.
  EXPECT_FALSE(budget.PricesFor(kPriced).empty());
  SpeculationPlan given = kPriced;
  given.speculation_length = 6;
  EXPECT_EQ(budget.NodesOf(given, 1), 5);
  EXPECT_TRUE(budget.PricesFor(given).empty());
  EXPECT_TRUE(budget.PricesBeside(given, 3).empty());
}

TEST(RetrievalBudget, TheKneeIsSharedByTheBatch) {
  RetrievalBudget budget({.row_times = TimeTable::Line(1, 0.1), .knee_rows = 12}, 63);
  SpeculationPlan knee = kPriced;
  knee.speculation_length = kKneeSpeculationLength;
  EXPECT_EQ(budget.NodesOf(knee, 1), 11);
  EXPECT_EQ(budget.NodesOf(knee, 4), 2);
}

TEST(RetrievalBudget, AFallbackMayProposeMoreThanTheDraft) {
  RetrievalBudget budget({}, 63);
  const SpeculationPlan plan{.mode = Mode::kSsd,
                             .lookahead = 2,
                             .speculation_length = 16,
                             .fallback = Fallback::kRetrieval};
  EXPECT_EQ(budget.NodesOf(plan, 1), 2);
  EXPECT_EQ(budget.MostNodes(plan, 1), 15);
}

}  // namespace
}  // namespace foretoken
