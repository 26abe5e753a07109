// Log-probabilities of a prompt's tokens are those of requests that generate them, bit for bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

constexpr int kTop = 3;

// Tokens and the bits of their log-probabilities.
using Bits = std::vector<std::pair<Token, std::uint32_t>>;

std::vector<Bits> BitsOf(const std::vector<std::vector<TokenLogprob>>& logprobs) {
  std::vector<Bits> all;
  for (const auto& entry : logprobs) {
    Bits& bits = all.emplace_back();
    for (const auto& [token, logprob] : entry) {
      bits.emplace_back(token, std::bit_cast<std::uint32_t>(logprob));
    }
  }
  return all;
}

// The other route: for each prefix a request of its own that has to generate the prompt's next
// token. What makes it do so does not enter log-probabilities, which are of the raw logits.
const std::vector<std::vector<Bits>>& LogprobsTruth() {
  static const auto truth = [] {
    const auto engine = Make(Mode::kAr, {.max_batch = 1, .prefix_cache = false});
    std::vector<std::vector<Bits>> all;
    for (const auto& prompt : PromptsOfAllLengths()) {
      Collector collector;
      for (std::size_t length = 1; length < prompt.size(); ++length) {
        SamplingParams sampling{.top_logprobs = kTop};
        sampling.logit_bias = {{prompt[length], 1e6F}};
        const auto id = engine->Submit({.prompt = {prompt.begin(), prompt.begin() + length},
                                        .sampling = sampling,
                                        .stop = {.max_tokens = 1},
                                        .listener = &collector});
        EXPECT_TRUE(id.ok());
      }
      engine->RunUntilIdle();
      std::vector<Bits>& bits = all.emplace_back();
      for (const auto& [id, output] : collector.outputs) {
        EXPECT_EQ(output.tokens[0], prompt[bits.size() + 1]);
        bits.push_back(BitsOf(output.logprobs)[0]);
      }
    }
    return all;
  }();
  return truth;
}

struct Asking {
  SamplingParams sampling = {};
  int max_tokens = 24;
  int top = kTop;
};

// Every prompt twice, as the second time some of it is cached.
std::vector<Collector::Output> Score(Engine& engine, const Asking& asking) {
  Collector collector;
  std::vector<SequenceId> ids;
  for (int turn = 0; turn < 2; ++turn) {
    for (const auto& prompt : PromptsOfAllLengths()) {
      const auto id = engine.Submit({.prompt = prompt,
                                     .sampling = asking.sampling,
                                     .stop = {.max_tokens = asking.max_tokens},
                                     .prompt_logprobs = asking.top,
                                     .listener = &collector});
      EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
      ids.push_back(*id);
    }
    engine.RunUntilIdle();
  }
  return Finish(engine, &collector, ids);
}

struct LogprobsCase {
  std::string name;
  Mode mode;
  EngineConfig options;
  bool preempts = false;
};

void PrintTo(const LogprobsCase& test, std::ostream* out) { *out << test.name; }

class PromptLogprobs : public testing::TestWithParam<LogprobsCase> {};

TEST_P(PromptLogprobs, EqualThoseOfRequestsThatGenerateTheTokens) {
  const auto engine = Make(GetParam().mode, GetParam().options);
  const auto plain_engine = Make(Mode::kAr, {.max_batch = 1});
  for (const float temperature : {0.0F, 0.8F}) {
    const SamplingParams sampling{.temperature = temperature, .seed = 5, .top_logprobs = 1};
    for (const int max_tokens : {0, 24}) {
      const auto outputs = Score(*engine, {.sampling = sampling, .max_tokens = max_tokens});
      const auto plain = Score(*plain_engine, {.sampling = sampling, .max_tokens = 24, .top = -1});
      int preemptions = 0;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_EQ(outputs[i].prompts_told, 1);
        EXPECT_EQ(BitsOf(outputs[i].prompt_logprobs), LogprobsTruth()[i % LogprobsTruth().size()]);
        EXPECT_EQ(outputs[i].stats.cached_prompt_tokens, 0);
        preemptions += outputs[i].stats.preemptions;
        if (max_tokens == 0) {
          EXPECT_TRUE(outputs[i].tokens.empty());
          EXPECT_EQ(outputs[i].reason, FinishReason::kMaxTokens);
          EXPECT_EQ(outputs[i].stats.rounds, 0);
          EXPECT_GT(outputs[i].stats.first_token_ns, outputs[i].stats.submitted_ns);
          continue;
        }
        // What is asked about the prompt changes nothing about what follows it.
        EXPECT_EQ(plain[i].prompts_told, 0);
        if (GetParam().options.verification == Verification::kRejection) continue;
        EXPECT_EQ(outputs[i].tokens, plain[i].tokens);
        EXPECT_EQ(BitsOf(outputs[i].logprobs), BitsOf(plain[i].logprobs));
      }
      EXPECT_TRUE(preemptions > 0 || !GetParam().preempts || max_tokens == 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, PromptLogprobs,
    testing::Values(
        LogprobsCase{"Ar", Mode::kAr, {.max_batch = 1}},
        LogprobsCase{"ArBatch4SmallChunks", Mode::kAr, {.max_batch = 4, .prefill_chunk = 5}},
        LogprobsCase{"ArLargeChunks", Mode::kAr, {.max_batch = 7, .prefill_chunk = 4096}},
        LogprobsCase{"SdBatch4", Mode::kSd, {.plan = {.lookahead = 4}, .max_batch = 4}},
        LogprobsCase{"SdTree", Mode::kSd, {.plan = {.tree_width = 3}, .max_batch = 3}},
        LogprobsCase{
            "SdRejection", Mode::kSd, {.max_batch = 3, .verification = Verification::kRejection}},
        LogprobsCase{"SsdBatch1", Mode::kSsd, {.max_batch = 1}},
        LogprobsCase{"SsdBatch4", Mode::kSsd, {.max_batch = 4, .prefill_chunk = 7}},
        LogprobsCase{"SsdTinyPool",
                     Mode::kSsd,
                     {.max_batch = 7, .prefill_chunk = 16, .max_context = 192, .kv_tokens = 256},
                     true},
        LogprobsCase{"Auto", Mode::kAuto, {.max_batch = 4}}),
    [](const auto& test) { return test.param.name; });

TEST(PromptScores, OfTheTokensAloneWhereNoOthersAreAskedFor) {
  const auto engine = Make(Mode::kAr, {.max_batch = 2});
  const auto outputs = Score(*engine, {.max_tokens = 0, .top = 0});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto bits = BitsOf(outputs[i].prompt_logprobs);
    const auto& truth = LogprobsTruth()[i % LogprobsTruth().size()];
    ASSERT_EQ(bits.size(), truth.size());
    for (std::size_t k = 0; k < bits.size(); ++k) EXPECT_EQ(bits[k], Bits{truth[k][0]});
  }
}

// A prompt that is preempted half-way is scored on where it was.
TEST(PromptScores, PreemptionScoresNoRowTwice) {
  const auto engine = Make(Mode::kAr, {.max_batch = 2, .prefill_chunk = 8});
  Collector collector;
  const auto prompts = PromptsOfAllLengths();
  const auto id = engine->Submit({.prompt = prompts.back(),
                                  .stop = {.max_tokens = 0},
                                  .prompt_logprobs = kTop,
                                  .listener = &collector});
  ASSERT_TRUE(id.ok());
  for (int round = 1; engine->Step(); ++round) {
    if (round == 3 || round == 7) ForcePreemption(*engine);
  }
  const Collector::Output& output = collector.outputs[*id];
  EXPECT_EQ(output.stats.preemptions, 2);
  EXPECT_EQ(output.prompts_told, 1);
  EXPECT_EQ(BitsOf(output.prompt_logprobs), LogprobsTruth().back());
}

}  // namespace
}  // namespace foretoken
