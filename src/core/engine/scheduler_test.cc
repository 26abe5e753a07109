#include "core/engine/scheduler.h"

#include <gtest/gtest.h>

#include "core/backend/batch_plan.h"
#include "core/engine/sequence_testing.h"

namespace foretoken {
namespace {

std::unique_ptr<Sequence> WaitingSequence(SequenceId id, int prompt_tokens, Token first = 0) {
  Request request;
  request.prompt.resize(prompt_tokens);
  for (int i = 0; i < prompt_tokens; ++i) request.prompt[i] = (first + i) % 16;
  return std::make_unique<Sequence>(id, std::move(request), SpeculationPlan{}, /*vocabulary=*/16,
                                    /*max_context=*/1024, std::vector<Token>{}, nullptr);
}

// Gives the sequence KV for all of its tokens, as a pass over them would.
void Compute(Scheduler* scheduler, Sequence* sequence) {
  const auto length = static_cast<std::int32_t>(sequence->tokens.size());
  ASSERT_TRUE(scheduler->Reserve(sequence, length));
  sequence->kv.committed = length;
}

TEST(Scheduler, AdmitsTheOldestFirstUpToTheBatch) {
  Scheduler scheduler(/*room=*/{.blocks = 64}, /*prefix_cache=*/false, /*max_batch=*/2);
  for (const SequenceId id : {1, 2, 3}) scheduler.Enqueue(WaitingSequence(id, 10));
  std::vector<Sequence*> admitted;
  Admit(&scheduler, &admitted);
  ASSERT_EQ(admitted.size(), 2U);
  EXPECT_EQ(admitted[0]->id, 1U);
  EXPECT_EQ(admitted[1]->id, 2U);
  EXPECT_EQ(scheduler.waiting().size(), 1U);
  EXPECT_EQ(scheduler.Remove(admitted[0])->id, 1U);
  Admit(&scheduler, &admitted);
  EXPECT_EQ(admitted.back()->id, 3U);
}

TEST(Scheduler, GroupsShareThePlaces) {
  Scheduler scheduler({.blocks = 64}, false, 3);
  const auto of_group = [](SequenceId id, std::uint64_t group) {
    auto sequence = WaitingSequence(id, 10);
    sequence->request.group = group;
    return sequence;
  };
  for (const SequenceId id : {1, 2, 3, 4}) scheduler.Enqueue(of_group(id, 7));
  std::vector<Sequence*> admitted;
  EXPECT_FALSE(scheduler.MakeWay());
  Admit(&scheduler, &admitted);
  ASSERT_EQ(admitted.size(), 3U);
  EXPECT_FALSE(scheduler.MakeWay());  // Nobody else wants anything.
  scheduler.Enqueue(of_group(5, 8));
  scheduler.Enqueue(of_group(6, 8));
  EXPECT_TRUE(scheduler.MakeWay());
  admitted.clear();
  Admit(&scheduler, &admitted);
  ASSERT_EQ(admitted.size(), 1U);
  EXPECT_EQ(admitted[0]->id, 5U);  // In place of 3, the youngest of the larger group.
  EXPECT_EQ(scheduler.running()[1]->id, 2U);
  EXPECT_FALSE(scheduler.MakeWay());  // Group 8 has its place: 6 waits for one that falls free.
  EXPECT_EQ(scheduler.Remove(scheduler.running()[0].get())->id, 1U);
  admitted.clear();
  Admit(&scheduler, &admitted);
  // One of each runs, so the one that has waited longest is next: who gave way.
  ASSERT_EQ(admitted.size(), 1U);
  EXPECT_EQ(admitted[0]->id, 3U);
  EXPECT_EQ(admitted[0]->stats.preemptions, 1);
}

TEST(Scheduler, SequencesWithoutAGroupRunInTheirOrder) {
  Scheduler scheduler({.blocks = 64}, false, 2);
  for (const SequenceId id : {1, 2, 3}) scheduler.Enqueue(WaitingSequence(id, 10));
  std::vector<Sequence*> admitted;
  Admit(&scheduler, &admitted);
  EXPECT_FALSE(scheduler.MakeWay());
  EXPECT_EQ(scheduler.waiting().front()->id, 3U);
}

TEST(Scheduler, WaitsForRoomUnlessNobodyRuns) {
  // Two blocks hold the first; the second would need two and one to spare.
  Scheduler scheduler({.blocks = 3}, false, 4);
  scheduler.Enqueue(WaitingSequence(1, 2 * kBlockSize));
  scheduler.Enqueue(WaitingSequence(2, kBlockSize + 1));
  std::vector<Sequence*> admitted;
  Admit(&scheduler, &admitted);  // Nothing is taken yet: both would seem to fit.
  Compute(&scheduler, admitted[0]);
  admitted.clear();
  scheduler.Enqueue(WaitingSequence(3, kBlockSize));
  Admit(&scheduler, &admitted);
  EXPECT_TRUE(admitted.empty());
}

TEST(Scheduler, TheYoungestGivesWayAndIsTheFirstToReturn) {
  Scheduler scheduler({.blocks = 3}, false, 4);
  scheduler.Enqueue(WaitingSequence(1, kBlockSize));
  scheduler.Enqueue(WaitingSequence(2, kBlockSize));
  std::vector<Sequence*> admitted;
  Admit(&scheduler, &admitted);
  ASSERT_EQ(admitted.size(), 2U);
  Compute(&scheduler, admitted[0]);
  Compute(&scheduler, admitted[1]);
  scheduler.Enqueue(WaitingSequence(3, 1));
  // The oldest needs three blocks: one more than there are besides the other's.
  EXPECT_TRUE(scheduler.Reserve(admitted[0], 3 * kBlockSize));
  ASSERT_EQ(scheduler.running().size(), 1U);
  ASSERT_EQ(scheduler.waiting().size(), 2U);
  EXPECT_EQ(scheduler.waiting().front()->id, 2U);
  EXPECT_EQ(scheduler.waiting().front()->stats.preemptions, 1);
  EXPECT_EQ(scheduler.waiting().front()->uncomputed(), kBlockSize);
}

TEST(Scheduler, TheYoungestItselfGivesWayToNobodyElse) {
  Scheduler scheduler({.blocks = 3}, false, 4);
  scheduler.Enqueue(WaitingSequence(1, kBlockSize));
  scheduler.Enqueue(WaitingSequence(2, kBlockSize));
  std::vector<Sequence*> admitted;
  Admit(&scheduler, &admitted);
  Compute(&scheduler, admitted[0]);
  EXPECT_FALSE(scheduler.Reserve(admitted[1], 3 * kBlockSize));
  EXPECT_EQ(scheduler.running().size(), 1U);
  EXPECT_EQ(scheduler.waiting().front()->id, 2U);
}

TEST(Scheduler, APrefixThatWasComputedBeforeIsCountedOnce) {
  Scheduler scheduler({.blocks = 16}, /*prefix_cache=*/true, 4);
  scheduler.Enqueue(WaitingSequence(1, 2 * kBlockSize));
  std::vector<Sequence*> admitted;
  Admit(&scheduler, &admitted);
  Compute(&scheduler, admitted[0]);
  scheduler.kv().Publish(admitted[0]->tokens, &admitted[0]->kv);
  scheduler.Remove(admitted[0]);
  scheduler.Enqueue(WaitingSequence(2, 2 * kBlockSize));
  Admit(&scheduler, &admitted);
  Sequence* const again = admitted.back();
  EXPECT_EQ(again->stats.cached_prompt_tokens, kBlockSize);  // The last token is always computed.
  scheduler.PreemptYoungest();
  Admit(&scheduler, &admitted);
  EXPECT_EQ(again->stats.cached_prompt_tokens, kBlockSize);
  EXPECT_TRUE(scheduler.kv().CheckIntegrity().ok());
}

}  // namespace
}  // namespace foretoken
