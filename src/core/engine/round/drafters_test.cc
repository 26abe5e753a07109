#include "core/engine/round/drafters.h"

#include <gtest/gtest.h>

#include "core/engine/sequence_testing.h"

namespace foretoken {
namespace {

RunningSet Running(const SpeculationPlan& plan) {
  RunningSet running;
  running.push_back(DecodingSequence(1, {1, 2, 3, 4, 1, 2, 3}, plan));
  return running;
}

TEST(Drafters, PromptLookupIsAlwaysThere) {
  Drafters drafters({}, RetrievalBudget({}, 63), /*taps=*/nullptr, /*parts=*/{}, /*vocabulary=*/16,
                    /*max_batch=*/1);
  EXPECT_TRUE(drafters.Has(DrafterId::kNgram));
  EXPECT_FALSE(drafters.Has(DrafterId::kModel));
  const RunningSet running = Running({.mode = Mode::kNgram, .lookahead = 2});
  drafters.Propose(running);
  ASSERT_GE(running[0]->proposal.size(), 1);
  EXPECT_EQ(running[0]->proposal.tokens[0], 4);
}

TEST(Drafters, NobodyDraftsFromAPromptUnderWay) {
  Drafters drafters({}, RetrievalBudget({}, 63), nullptr, {}, 16, 1);
  const RunningSet running = Running({.mode = Mode::kNgram, .lookahead = 2});
  running[0]->kv.committed = 2;
  drafters.Propose(running);
  EXPECT_EQ(running[0]->proposal.size(), 0);
}

TEST(Drafters, TheFallbackOfThePlanProposesAfterAMiss) {
  Drafters drafters({}, RetrievalBudget({}, 63), nullptr, {}, 16, 1);
  const auto proposed = [&](Fallback fallback) {
    const RunningSet running = Running({.mode = Mode::kSsd, .lookahead = 2, .fallback = fallback});
    drafters.ProposeOnMiss(running, running[0].get());
    return running[0]->proposal;
  };
  EXPECT_EQ(proposed(Fallback::kNgram).source, ProposalSource::kNgram);
  EXPECT_EQ(proposed(Fallback::kRandom).source, ProposalSource::kRandom);
  EXPECT_EQ(proposed(Fallback::kRetrieval).source, ProposalSource::kRetrieval);
  EXPECT_EQ(proposed(Fallback::kNone).size(), 0);
  EXPECT_EQ(proposed(Fallback::kJit).size(), 0);  // The speculator's business.
}

TEST(Drafters, ProposesNoMoreThanMayBeEmitted) {
  const Drafters drafters({}, RetrievalBudget({}, 63), nullptr, {}, 16, 1);
  const auto sequence = DecodingSequence(1, {1, 2}, {.mode = Mode::kSd, .lookahead = 40});
  const DraftContext context = drafters.ContextFor(DrafterId::kModel, 1, sequence.get());
  EXPECT_EQ(context.lookahead, 7);  // Eight tokens, of which one is the bonus token.
}

const SpeculationPlan kPriced{
    .mode = Mode::kSssd, .lookahead = 3, .speculation_length = kAutoSpeculationLength};

TEST(RetrievalBudget, WithoutMeasuredPassesALookaheadIsAllThatIsAsked) {
  RetrievalBudget budget({}, /*max_nodes=*/63);
  EXPECT_EQ(budget.NodesOf(kPriced, 1), 3);
  EXPECT_TRUE(budget.PricesFor(kPriced).empty());
}

TEST(RetrievalBudget, PricesApplyWhereTheLengthIsLeftOpen) {
  RetrievalBudget budget({.row_times = TimeTable::Line(1, 0.1), .knee_rows = 8}, 20);
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
