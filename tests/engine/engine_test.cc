// Requests and their limits, stop rules and plans, with whole engines in every mode.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/numbers/integers.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

constexpr StopRules kEngineStop{.max_tokens = 96};

// What the new mode's drafter holds of a sequence is freed even where the round in which SSD gave
// way was its last.
TEST(Engine, ForgetsASequenceThatEndsAsItsModeChanges) {
  const std::vector<Mode> modes = {Mode::kSsd, Mode::kSd};
  const auto engine =
      MakeEngine(modes, {.max_batch = 1}, BundledTarget(), std::array{BundledDraft()});
  ASSERT_TRUE(engine.ok());
  Collector collector;
  for (int i = 0; i < 3; ++i) {
    Request request{.prompt = StoryPrompts()[0],
                    .stop = kEngineStop,
                    .plan = PlanOptions{.mode = Mode::kSsd},
                    .listener = &collector};
    const SequenceId id = *(*engine)->Submit(std::move(request));
    for (int step = 0; step < 4; ++step) ASSERT_TRUE((*engine)->Step());
    ASSERT_TRUE((*engine)->ChangePlan(id, {.mode = Mode::kSd}).ok());
    (*engine)->Step();
    (*engine)->Cancel(id);
    (*engine)->RunUntilIdle();
  }
  EXPECT_TRUE((*engine)->CheckIdle().ok());
}

TEST(Engine, RefusesPlansItCannotFollow) {
  const auto engine = Make(Mode::kSd, {.max_batch = 1});
  Collector collector;
  const auto refusal = [&](const PlanOptions& plan) {
    Request request{.prompt = StoryPrompts()[0], .plan = plan, .listener = &collector};
    const auto id = engine->Submit(std::move(request));
    return id.ok() ? std::string("accepted") : id.error().message;
  };
  EXPECT_EQ(refusal({.mode = Mode::kSsd}), "mode ssd was not set up for this engine");
  EXPECT_EQ(refusal({.mode = Mode::kSd, .lookahead = 0}), "lookahead must be from 1 to 6, not 0");
  EXPECT_EQ(refusal({.mode = Mode::kSd, .lookahead = 7}), "lookahead must be from 1 to 6, not 7");
  EXPECT_EQ(refusal({.mode = Mode::kAr, .lookahead = 0}), "accepted");
  EXPECT_EQ(refusal({.mode = Mode::kAr, .lookahead = 7}), "lookahead must be from 0 to 6, not 7");
  const auto ssd = Make(Mode::kSsd, {.max_batch = 1});
  Request request{.prompt = StoryPrompts()[0],
                  .plan = PlanOptions{.mode = Mode::kSsd, .fallback = Fallback::kAuto}};
  request.listener = &collector;
  EXPECT_THAT(ssd->Submit(request).error().message, testing::HasSubstr("fallback auto need mode"));
  engine->RunUntilIdle();
}

TEST(Engine, StopStringsCutTheSameTextInEveryMode) {
  std::vector<std::string> texts;
  for (const Mode mode : {Mode::kAr, Mode::kSd, Mode::kSsd}) {
    const auto engine = Make(mode, {.max_batch = 2});
    StopRules stop = kEngineStop;
    stop.stop_strings = {"and she", ". The"};
    for (const auto& output : Generate(*engine, StoryPrompts(), {}, stop)) {
      EXPECT_EQ(output.text.find("and she"), std::string::npos);
      EXPECT_EQ(output.text.find(". The"), std::string::npos);
      texts.push_back(output.text + "/" + std::string(FinishReasonName(output.reason)) + "/" +
                      std::to_string(output.stats.output_tokens));
    }
  }
  const std::size_t count = StoryPrompts().size();
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i], texts[i % count]);
}

TEST(Engine, LimitsHoldToTheToken) {
  for (const Mode mode : {Mode::kAr, Mode::kSd, Mode::kSsd}) {
    const auto engine = Make(mode, {.max_batch = 2, .max_context = 64});
    for (const int limit : {1, 2, 5, 1000}) {
      const StopRules stop{.max_tokens = limit, .ignore_eos = true};
      const auto prompts = StoryPrompts();
      const auto outputs = Generate(*engine, prompts, {}, stop);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const int room = 64 - Int(prompts[i].size());
        EXPECT_EQ(std::ssize(outputs[i].tokens), std::min(limit, room));
        EXPECT_EQ(outputs[i].reason,
                  limit <= room ? FinishReason::kMaxTokens : FinishReason::kContextFull);
      }
    }
  }
}

TEST(Engine, LogprobsAreOfTheRawDistributionInEveryMode) {
  std::vector<std::vector<TokenLogprob>> first;
  for (const Mode mode : {Mode::kAr, Mode::kSd, Mode::kSsd}) {
    const auto engine = Make(mode, {.max_batch = 1});
    SamplingParams sampling{.temperature = 1.0F, .seed = 3};
    sampling.top_logprobs = 3;
    const auto outputs = Generate(*engine, {StoryPrompts()[0]}, sampling, {.max_tokens = 20});
    ASSERT_EQ(outputs[0].logprobs.size(), 20);
    for (std::size_t i = 0; i < 20; ++i) {
      const auto& entry = outputs[0].logprobs[i];
      ASSERT_EQ(entry.size(), 4);
      EXPECT_EQ(entry[0].token, outputs[0].tokens[i]);
      EXPECT_GE(entry[1].logprob, entry[2].logprob);
      if (mode == Mode::kAr) {
        first.push_back(entry);
      } else {
        for (int j = 0; j < 4; ++j) {
          EXPECT_EQ(entry[j].token, first[i][j].token);
          EXPECT_EQ(entry[j].logprob, first[i][j].logprob);
        }
      }
    }
  }
}

TEST(Engine, PrefixCacheFindsSharedPromptsAndChangesNothing) {
  std::string text =
      "Once upon a time, there was a little girl named Lily. She had a red ball and a blue ball. "
      "She liked to play with her friends in the park every day after school was over.";
  const auto prompt = BundledTarget()->tokenizer->Encode(text, true, false);
  const auto engine = Make(Mode::kAr, {.max_batch = 1});
  const auto first = Generate(*engine, {prompt}, {}, kEngineStop);
  const auto second = Generate(*engine, {prompt}, {}, kEngineStop);
  EXPECT_EQ(first[0].stats.cached_prompt_tokens, 0);
  EXPECT_GE(second[0].stats.cached_prompt_tokens, 32);
  EXPECT_EQ(first[0].tokens, second[0].tokens);
}

TEST(Engine, RefusesWhatCannotRun) {
  const auto engine = Make(Mode::kAr, {.max_batch = 1, .max_waiting = 1, .max_context = 64});
  Collector collector;
  const auto submit = [&](std::vector<Token> prompt, SamplingParams sampling = {},
                          StopRules stop = {}) {
    return engine->Submit({.prompt = std::move(prompt),
                           .sampling = sampling,
                           .stop = std::move(stop),
                           .listener = &collector});
  };
  EXPECT_THAT(submit({}).error().message, testing::HasSubstr("empty"));
  EXPECT_THAT(submit({5, 99999}).error().message, testing::HasSubstr("outside the vocabulary"));
  EXPECT_THAT(submit(std::vector<Token>(64, 5)).error().message,
              testing::HasSubstr("the context holds 64"));
  EXPECT_FALSE(submit({1}, {.temperature = -1}).ok());
  EXPECT_FALSE(submit({1}, {}, {.max_tokens = 0}).ok());
  EXPECT_TRUE(submit({1, 5}).ok());
  EXPECT_TRUE(submit({1, 5}).ok());
  EXPECT_EQ(submit({1, 5}).error().code, ErrorCode::kUnavailable);
  engine->RunUntilIdle();
  EXPECT_EQ(collector.outputs.size(), 2);
}

TEST(Engine, CancelEndsARequestAndFreesItsMemory) {
  for (const Mode mode : {Mode::kAr, Mode::kSd, Mode::kSsd}) {
    const auto engine = Make(mode, {.max_batch = 1});
    Collector collector;
    const Request request{.prompt = StoryPrompts()[0],
                          .stop = {.max_tokens = 400, .ignore_eos = true},
                          .listener = &collector};
    const auto running = engine->Submit(request);
    const auto waiting = engine->Submit(request);
    for (int i = 0; i < 5; ++i) engine->Step();
    engine->Cancel(*running);
    engine->Cancel(*waiting);
    engine->Cancel(12345);
    engine->RunUntilIdle();
    EXPECT_EQ(collector.outputs[*running].reason, FinishReason::kCancelled);
    EXPECT_FALSE(collector.outputs[*running].tokens.empty());
    EXPECT_TRUE(collector.outputs[*waiting].finished);
    EXPECT_TRUE(engine->CheckIdle().ok());
  }
}

}  // namespace
}  // namespace foretoken
