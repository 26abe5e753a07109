#include "core/engine/round/target_pass.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/engine/sequence_testing.h"

namespace foretoken {
namespace {

std::unique_ptr<Sequence> WaitingPrompt(SequenceId id, int prompt_tokens) {
  std::vector<Token> prompt(prompt_tokens);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<Token>((id + i) % 16);
  return std::make_unique<Sequence>(id, Request{.prompt = prompt, .stop = {.max_tokens = 64}},
                                    SpeculationPlan{}, 16, 256, std::vector<Token>{}, nullptr);
}

TEST(PlanPass, PromptsShareTheirBudgetAndTheLastTokenAlwaysGoes) {
  Scheduler scheduler(/*room=*/{.blocks = 32}, /*prefix_cache=*/false, /*max_batch=*/4);
  scheduler.Enqueue(WaitingPrompt(1, 50));
  scheduler.Enqueue(WaitingPrompt(2, 50));
  scheduler.Enqueue(WaitingPrompt(3, 1));
  std::vector<Sequence*> admitted;
  Admit(&scheduler, &admitted);
  ASSERT_EQ(admitted.size(), 3U);
  Round round;
  ForwardBatch batch;
  ASSERT_TRUE(PlanPass(60, &scheduler, &round, &batch));
  EXPECT_EQ(round.rows, 61);
  EXPECT_TRUE(round.prefills);
  EXPECT_TRUE(admitted[0]->verifies);
  EXPECT_EQ(admitted[1]->pass_rows, 10);
  EXPECT_FALSE(admitted[1]->verifies);
  EXPECT_TRUE(admitted[2]->verifies);
  EXPECT_EQ(admitted[2]->first_logits, 1);  // The second one's rows have none.
}

TEST(PlanPass, PromptsThatAreScoredWantLogitsOfAFewRowsAPass) {
  Scheduler scheduler(/*room=*/{.blocks = 32}, /*prefix_cache=*/false, /*max_batch=*/4);
  scheduler.Enqueue(WaitingPrompt(1, 1));
  for (const SequenceId id : {2, 3}) {
    auto scored = WaitingPrompt(id, 50);
    scored->request.prompt_logprobs = 0;
    scored->request.stop.max_tokens = id == 2 ? 0 : 8;
    scheduler.Enqueue(std::move(scored));
  }
  std::vector<Sequence*> admitted;
  Admit(&scheduler, &admitted);
  ASSERT_EQ(admitted.size(), 3U);
  Round round;
  ForwardBatch batch;
  ASSERT_TRUE(PlanPass(128, &scheduler, &round, &batch));
  // Whether the last row wants logits is up to what follows the prompt.
  EXPECT_FALSE(admitted[1]->verifies);
  EXPECT_EQ(admitted[1]->pass_rows, 50);
  EXPECT_EQ(admitted[1]->prompt_logits, 49);
  EXPECT_EQ(admitted[1]->first_prompt_logits, 1);
  EXPECT_EQ(admitted[2]->pass_rows, kScoredRowsPerPass - 50);
  EXPECT_EQ(admitted[2]->first_prompt_logits, 50);
  EXPECT_EQ(std::ranges::count_if(batch.rows, &ForwardRow::wants_logits), kScoredRowsPerPass);
  // Preempted after 10 of its rows, the last computes all again and scores the rest.
  admitted[1]->kv.committed = 49;
  admitted[1]->scored = 49;
  admitted[2]->scored = 10;
  ASSERT_TRUE(PlanPass(128, &scheduler, &round, &batch));
  EXPECT_EQ(admitted[1]->prompt_logits, 0);
  EXPECT_TRUE(round.prefills);
  EXPECT_TRUE(admitted[2]->verifies);
  EXPECT_EQ(admitted[2]->pass_rows, 50);
  EXPECT_EQ(admitted[2]->prompt_logits, 39);
  EXPECT_EQ(admitted[2]->first_logits, 1 + 39);
}

TEST(PlanPass, OfPromptsThatAreEmbeddedTheStatesAreWantedAndNoLogits) {
  Scheduler scheduler(/*room=*/{.blocks = 32}, /*prefix_cache=*/false, /*max_batch=*/4);
  scheduler.Enqueue(WaitingPrompt(1, 1));
  for (const SequenceId id : {2, 3}) {
    auto embedded = WaitingPrompt(id, 50);
    embedded->request.embedding = id == 2 ? Pooling::kMean : Pooling::kLast;
    embedded->request.stop.max_tokens = 0;
    scheduler.Enqueue(std::move(embedded));
  }
  std::vector<Sequence*> admitted;
  Admit(&scheduler, &admitted);
  ASSERT_EQ(admitted.size(), 3U);
  admitted[1]->pooled = 20;  // Preempted there, it computes all again and counts the rest.
  Round round;
  ForwardBatch batch;
  ASSERT_TRUE(PlanPass(128, &scheduler, &round, &batch));
  EXPECT_EQ(std::ranges::count_if(batch.rows, &ForwardRow::wants_logits), 1);
  EXPECT_EQ(admitted[0]->states, 0);
  EXPECT_EQ(admitted[1]->states, 30);
  EXPECT_EQ(admitted[1]->first_state, 0);
  EXPECT_EQ(admitted[2]->states, 1);
  EXPECT_EQ(admitted[2]->first_state, 30);
  EXPECT_TRUE(batch.rows.back().wants_state);
}

TEST(PlanPass, TheYoungestGivesWayWhereTheKvDoesNotSuffice) {
  Scheduler scheduler(/*room=*/{.blocks = 4}, /*prefix_cache=*/false, /*max_batch=*/2);
  scheduler.Enqueue(WaitingPrompt(1, kBlockSize));
  scheduler.Enqueue(WaitingPrompt(2, kBlockSize));
  std::vector<Sequence*> admitted;
  Admit(&scheduler, &admitted);
  ASSERT_EQ(admitted.size(), 2U);
  Round round;
  ForwardBatch batch;
  ASSERT_TRUE(PlanPass(256, &scheduler, &round, &batch));
  EXPECT_EQ(round.pass.size(), 2U);
  for (Sequence* sequence : admitted) sequence->kv.committed = kBlockSize - 1;
  // The oldest one's proposal now takes three blocks, which leaves one for two sequences' two.
  for (int i = 0; i < 2 * kBlockSize - 1; ++i) admitted[0]->proposal.Extend(1);
  admitted[1]->proposal.Extend(1);
  ASSERT_TRUE(PlanPass(256, &scheduler, &round, &batch));
  ASSERT_EQ(round.pass.size(), 1U);
  EXPECT_EQ(round.pass[0], admitted[0]);
  EXPECT_EQ(admitted[1]->stats.preemptions, 1);
  EXPECT_EQ(scheduler.waiting().size(), 1U);
}

}  // namespace
}  // namespace foretoken
