#include "engine/round/drafters.h"

#include <gtest/gtest.h>

#include "engine/sequence_testing.h"

namespace foretoken {
namespace {

RunningSet Running(const SpeculationPlan& plan) {
  RunningSet running;
  running.push_back(DecodingSequence(1, {1, 2, 3, 4, 1, 2, 3}, plan));
  return running;
}

TEST(Drafters, PromptLookupIsAlwaysThere) {
  Drafters drafters({}, RetrievalBudget({}, 63), /*vocabulary=*/16, /*max_batch=*/1);
  EXPECT_TRUE(drafters.Has(DrafterId::kNgram));
  EXPECT_FALSE(drafters.Has(DrafterId::kModel));
  const RunningSet running = Running({.mode = Mode::kNgram, .lookahead = 2});
  drafters.Propose(running);
  ASSERT_GE(running[0]->proposal.size(), 1);
  EXPECT_EQ(running[0]->proposal.tokens[0], 4);
}

TEST(Drafters, NobodyDraftsFromAPromptUnderWay) {
  Drafters drafters({}, RetrievalBudget({}, 63), 16, 1);
  const RunningSet running = Running({.mode = Mode::kNgram, .lookahead = 2});
  running[0]->kv.committed = 2;
  drafters.Propose(running);
  EXPECT_EQ(running[0]->proposal.size(), 0);
}

TEST(Drafters, TheFallbackOfThePlanProposesAfterAMiss) {
  Drafters drafters({}, RetrievalBudget({}, 63), 16, 1);
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
  const Drafters drafters({}, RetrievalBudget({}, 63), 16, 1);
  const auto sequence = DecodingSequence(1, {1, 2}, {.mode = Mode::kSd, .lookahead = 40});
  const DraftContext context = drafters.ContextFor(DrafterId::kModel, 1, sequence.get());
  EXPECT_EQ(context.lookahead, 7);  // Eight tokens, of which one is the bonus token.
}

}  // namespace
}  // namespace foretoken
