// Where a model's numbers stop being finite: the target's end its sequence where they do in AR, in
// every mode; a draft's end nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/engine_testing.h"
#include "tests/engine/overflow_testing.h"

namespace foretoken {
namespace {

constexpr StopRules kNotFiniteStop{.max_tokens = 120, .ignore_eos = true};
constexpr Token kTrigger = OverflowFolder::kTrigger;

const OverflowFolder& Overflowing() {
  static const OverflowFolder folder(Overflow::kBehindAToken);
  return folder;
}

LoadedModel* OverflowingTarget() {
  static const auto target = Overflowing().Load();
  return target.get();
}

LoadedModel* SoundTarget() {
  static const auto target = OverflowFolder(Overflow::kNone).Load();
  return target.get();
}

const SamplingParams kSampling{.temperature = 1.0F, .seed = 4};

struct NotFiniteCase {
  std::string name;
  Mode mode;
  EngineConfig config;
};

void PrintTo(const NotFiniteCase& test, std::ostream* out) { *out << test.name; }

std::vector<NotFiniteCase> NotFiniteCases() {
  const SpeculationPlan tree{.lookahead = 5, .tree_width = 3, .max_nodes = 15};
  std::vector<NotFiniteCase> cases = {
      {"ArBatch4", Mode::kAr, {.max_batch = 4}},
      {"Sd", Mode::kSd, {.max_batch = 2}},
      {"SdTree", Mode::kSd, {.plan = tree, .max_batch = 3}},
      {"Ssd", Mode::kSsd, {.max_batch = 1}},
      {"SsdTree", Mode::kSsd, {.plan = tree, .max_batch = 3}},
      {"SsdNgram", Mode::kSsd, {.plan = {.fallback = Fallback::kNgram}, .max_batch = 2}},
      {"Staged", kStaged, {.max_batch = 2}},
      {"Ensemble", kEnsemble, {.plan = {.speculation_length = 12}, .max_batch = 2}},
      {"Auto", Mode::kAuto, {.max_batch = 2}},
  };
  for (const char* name : {"ngram", "sssd", "trie", "lookahead", "jacobi", "recycle", "racer",
                           "suffix", "anpd", "protocol"}) {
    cases.push_back({name, *ParseMode(name), {.plan = {.lookahead = 6}, .max_batch = 3}});
  }
  return cases;
}

class NotFinite : public testing::TestWithParam<NotFiniteCase> {};

TEST_P(NotFinite, EndsASequenceWhereArEndsIt) {
  static const auto truth =
      Generate(*Make(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, {}, OverflowingTarget()),
               StoryPrompts(), kSampling, kNotFiniteStop);
  const auto engine =
      Make(GetParam().mode, GetParam().config, Overflowing().Draft(), OverflowingTarget());
  const auto outputs = Generate(*engine, StoryPrompts(), kSampling, kNotFiniteStop);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(outputs[i].tokens, truth[i].tokens) << i;
    EXPECT_EQ(outputs[i].text, truth[i].text) << i;
    EXPECT_EQ(outputs[i].reason, FinishReason::kNotFinite) << i;
    ASSERT_FALSE(outputs[i].tokens.empty()) << i;
    // Its own row is the first that is not finite.
    EXPECT_EQ(std::ranges::count(outputs[i].tokens, kTrigger), 1) << i;
    EXPECT_EQ(outputs[i].tokens.back(), kTrigger) << i;
  }
}

// The draft's numbers are not finite behind the trigger, or never are: the sound target goes on.
TEST_P(NotFinite, OfADraftChangesNothing) {
  static const auto truth = TokensOf(Generate(*Make(Mode::kAr, {.max_batch = 1}, {}, SoundTarget()),
                                              StoryPrompts(), kSampling, kNotFiniteStop));
  for (const auto overflow : {Overflow::kBehindAToken, Overflow::kOfALogit}) {
    const OverflowFolder draft(overflow);
    const auto engine = Make(GetParam().mode, GetParam().config, draft.Draft(), SoundTarget());
    const auto outputs = Generate(*engine, StoryPrompts(), kSampling, kNotFiniteStop);
    EXPECT_EQ(TokensOf(outputs), truth);
    for (const auto& output : outputs) EXPECT_EQ(output.reason, FinishReason::kMaxTokens);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, NotFinite, testing::ValuesIn(NotFiniteCases()),
                         [](const auto& test) { return test.param.name; });

TEST(NotFiniteByRejection, EndsASequenceAndNotForADraft) {
  for (const Mode mode : {Mode::kSd, Mode::kSsd, kStaged}) {
    for (const int width : {1, 3}) {
      const EngineConfig config{.plan = {.lookahead = 4, .tree_width = width},
                                .max_batch = 3,
                                .verification = Verification::kRejection};
      const auto engine = Make(mode, config, Overflowing().Draft(), OverflowingTarget());
      for (const auto& output : Generate(*engine, StoryPrompts(), kSampling, kNotFiniteStop)) {
        EXPECT_EQ(output.reason, FinishReason::kNotFinite);
        EXPECT_EQ(std::ranges::find(output.tokens, kTrigger), output.tokens.end() - 1);
      }
      for (const auto overflow : {Overflow::kBehindAToken, Overflow::kOfALogit}) {
        const OverflowFolder draft(overflow);
        const auto sound = Make(mode, config, draft.Draft(), SoundTarget());
        for (const auto& output : Generate(*sound, StoryPrompts(), kSampling, kNotFiniteStop)) {
          EXPECT_EQ(output.reason, FinishReason::kMaxTokens);
          EXPECT_GT(std::ranges::count(output.tokens, kTrigger), 2);
        }
      }
    }
  }
}

TEST(NotFiniteSequence, LeavesTheOthersOfItsBatchAlone) {
  SamplingParams never = kSampling;
  never.logit_bias = {{kTrigger, -100.0F}};
  const auto prompt = StoryPrompts()[0];
  const auto engine = Make(Mode::kAr, {.max_batch = 4}, {}, OverflowingTarget());
  const auto alone = Generate(*engine, {prompt}, never, kNotFiniteStop)[0];
  EXPECT_EQ(alone.reason, FinishReason::kMaxTokens);
  Collector collector;
  std::vector<SequenceId> ids;
  for (const bool fails : {true, false, true, false}) {
    ids.push_back(*engine->Submit({.prompt = prompt,
                                   .sampling = fails ? kSampling : never,
                                   .stop = kNotFiniteStop,
                                   .listener = &collector}));
  }
  const auto outputs = Finish(*engine, &collector, ids);
  for (const std::size_t i : {0, 2}) EXPECT_EQ(outputs[i].reason, FinishReason::kNotFinite);
  for (const std::size_t i : {1, 3}) EXPECT_EQ(outputs[i].tokens, alone.tokens);
}

// A prompt that holds the trigger has no first token.
std::vector<Token> FailingPrompt(std::size_t at, std::size_t length) {
  std::vector<Token> prompt(length);
  for (std::size_t i = 0; i < length; ++i) prompt[i] = static_cast<Token>(10 + i % 400);
  prompt[at] = kTrigger;
  return prompt;
}

TEST(NotFiniteSequence, LeavesNothingInThePrefixCache) {
  SamplingParams never = kSampling;
  never.logit_bias = {{kTrigger, -100.0F}};
  const auto engine =
      Make(Mode::kAr, {.max_batch = 1, .prefill_chunk = 32}, {}, OverflowingTarget());
  const auto failing = FailingPrompt(70, 200);
  for (int time = 0; time < 2; ++time) {
    const auto output = Generate(*engine, {failing}, never, kNotFiniteStop)[0];
    EXPECT_EQ(output.reason, FinishReason::kNotFinite);
    EXPECT_TRUE(output.tokens.empty());
    EXPECT_EQ(output.stats.cached_prompt_tokens, 0);
    EXPECT_EQ(engine->kv_usage().cached, 0);
  }
  // What another sequence goes on from stays.
  auto sound = failing;
  sound[70] = 8;
  EXPECT_EQ(Generate(*engine, {sound}, never, kNotFiniteStop)[0].reason, FinishReason::kMaxTokens);
  const auto cached = engine->kv_usage().cached;
  EXPECT_GE(cached, 6);
  const auto again = Generate(*engine, {failing}, never, kNotFiniteStop)[0];
  EXPECT_EQ(again.reason, FinishReason::kNotFinite);
  EXPECT_EQ(again.stats.cached_prompt_tokens, 64);
  EXPECT_EQ(engine->kv_usage().cached, cached);
  EXPECT_EQ(Generate(*engine, {sound}, never, kNotFiniteStop)[0].stats.cached_prompt_tokens, 192);
}

// Nobody has looked at logits of it yet: what it made of keys and values is in blocks that are
// free.
TEST(NotFiniteSequence, LeavesNothingWhereItIsCancelledWhileItsPromptIsRead) {
  SamplingParams never = kSampling;
  never.logit_bias = {{kTrigger, -100.0F}};
  const auto prompt = StoryPrompts()[0];
  const EngineConfig config{.max_batch = 1, .prefill_chunk = 32, .prefix_cache = false};
  const auto truth =
      Generate(*Make(Mode::kAr, config, {}, OverflowingTarget()), {prompt}, never, kNotFiniteStop);
  const auto engine = Make(Mode::kAr, config, {}, OverflowingTarget());
  Collector collector;
  const SequenceId failing = *engine->Submit({.prompt = FailingPrompt(5, 320),
                                              .sampling = never,
                                              .stop = kNotFiniteStop,
                                              .listener = &collector});
  for (int pass = 0; pass < 8; ++pass) engine->Step();
  EXPECT_FALSE(collector.outputs[failing].finished);
  engine->Cancel(failing);
  EXPECT_EQ(Finish(*engine, &collector, {failing})[0].reason, FinishReason::kCancelled);
  EXPECT_EQ(TokensOf(Generate(*engine, {prompt}, never, kNotFiniteStop)), TokensOf(truth));
}

TEST(NotFiniteSequence, HasNeitherLogProbabilitiesNorAnEmbedding) {
  const auto engine = Make(Mode::kAr, {.max_batch = 2}, {}, OverflowingTarget());
  for (const bool fails : {true, false}) {
    const auto prompt = fails ? FailingPrompt(20, 40) : StoryPrompts()[0];
    Collector collector;
    std::vector<SequenceId> ids = {*engine->Submit({.prompt = prompt,
                                                    .stop = {.max_tokens = 0},
                                                    .prompt_logprobs = 0,
                                                    .listener = &collector}),
                                   *engine->Submit({.prompt = prompt,
                                                    .stop = {.max_tokens = 0},
                                                    .embedding = Pooling::kMean,
                                                    .listener = &collector})};
    for (const auto& output : Finish(*engine, &collector, ids)) {
      EXPECT_EQ(output.reason, fails ? FinishReason::kNotFinite : FinishReason::kMaxTokens);
      EXPECT_EQ(output.prompts_told + output.embeddings_told, fails ? 0 : 1);
    }
  }
}

TEST(NotFiniteSequence, IsFoundInEveryPrecisionAndFormat) {
  for (const Precision precision : {Precision::kF32, Precision::kBF16, Precision::kPortable}) {
    auto loaded = LoadModel({.path = Overflowing().path()},
                            std::make_shared<Device>(CoreSet{TargetCore()}), precision);
    ASSERT_TRUE(loaded.ok());
    const auto engine = Make(Mode::kAr, {.max_batch = 1}, {}, loaded->get());
    const auto output = Generate(*engine, {StoryPrompts()[0]}, {}, kNotFiniteStop)[0];
    EXPECT_EQ(output.reason, FinishReason::kNotFinite) << PrecisionName(precision);
    EXPECT_THAT(output.tokens, testing::ElementsAre(kTrigger)) << PrecisionName(precision);
  }
}

}  // namespace
}  // namespace foretoken
