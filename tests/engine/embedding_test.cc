// A prompt's embedding has the same bits in every mode, in any company and in passes of any size,
// and is that of an independent program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "json/json.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

constexpr Pooling kPoolings[] = {Pooling::kMean, Pooling::kLast};

SequenceId Embed(Engine& engine, const std::vector<Token>& prompt, Pooling pooling,
                 Collector* collector) {
  const auto id = engine.Submit(
      {.prompt = prompt, .stop = {.max_tokens = 0}, .embedding = pooling, .listener = collector});
  EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
  return *id;
}

// Each alone, all of its prompt in one pass.
const std::vector<std::vector<float>>& EmbeddingTruth() {
  static const auto truth = [] {
    const auto engine =
        Make(Mode::kAr, {.max_batch = 1, .prefill_chunk = 4096, .prefix_cache = false});
    Collector collector;
    for (const Pooling pooling : kPoolings) {
      for (const auto& prompt : PromptsOfAllLengths()) Embed(*engine, prompt, pooling, &collector);
    }
    engine->RunUntilIdle();
    std::vector<std::vector<float>> all;
    for (const auto& [id, output] : collector.outputs) all.push_back(output.embedding);
    return all;
  }();
  return truth;
}

struct EmbeddingCase {
  std::string name;
  Mode mode;
  EngineConfig options;
  bool tiny_pool = false;  // Which does not keep prefixes.
  bool preempts = false;
};

void PrintTo(const EmbeddingCase& test, std::ostream* out) { *out << test.name; }

class Embeddings : public testing::TestWithParam<EmbeddingCase> {};

// Twice, as the second time the prompts are cached, and beside sequences that generate.
TEST_P(Embeddings, HaveTheBitsThatEachHasAlone) {
  const auto engine = Make(GetParam().mode, GetParam().options);
  int preemptions = 0;  // Preemptions of what is embedded.
  for (int turn = 0; turn < 2; ++turn) {
    Collector stories;
    Collector collector;
    std::vector<SequenceId> ids;
    for (const auto& prompt : StoryPrompts()) {
      ASSERT_TRUE(engine
                      ->Submit({.prompt = prompt,
                                .stop = {.max_tokens = 100, .ignore_eos = true},
                                .listener = &stories})
                      .ok());
    }
    for (const Pooling pooling : kPoolings) {
      for (const auto& prompt : PromptsOfAllLengths()) {
        ids.push_back(Embed(*engine, prompt, pooling, &collector));
      }
    }
    engine->RunUntilIdle();
    const Status idle = engine->CheckIdle();
    EXPECT_TRUE(idle.ok()) << (idle.ok() ? "" : idle.error().message);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const Collector::Output& output = collector.outputs[ids[i]];
      EXPECT_EQ(output.embeddings_told, 1);
      EXPECT_TRUE(output.embedding == EmbeddingTruth()[i])
          << "embedding " << i << ", turn " << turn;
      EXPECT_TRUE(output.tokens.empty());
      EXPECT_EQ(output.reason, FinishReason::kMaxTokens);
      EXPECT_EQ(output.stats.rounds, 0);
      EXPECT_GT(output.stats.first_token_ns, output.stats.submitted_ns);
      const bool mean = i < PromptsOfAllLengths().size();
      if (mean) {
        EXPECT_EQ(output.stats.cached_prompt_tokens, 0);
      }
      const bool longest_again = !mean && turn == 1 && i + 1 == ids.size();
      if (longest_again && !GetParam().tiny_pool) {
        EXPECT_GT(output.stats.cached_prompt_tokens, 0);
      }
      preemptions += output.stats.preemptions;
    }
    for (const auto& [id, output] : stories.outputs) {
      EXPECT_EQ(output.tokens.size(), 100U);
      EXPECT_EQ(output.embeddings_told, 0);
    }
  }
  EXPECT_TRUE(preemptions > 0 || !GetParam().preempts);
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Embeddings,
    testing::Values(
        EmbeddingCase{"Ar", Mode::kAr, {.max_batch = 1}},
        EmbeddingCase{"ArSmallChunks", Mode::kAr, {.max_batch = 4, .prefill_chunk = 5}},
        EmbeddingCase{"ArLargeChunks", Mode::kAr, {.max_batch = 7, .prefill_chunk = 4096}},
        EmbeddingCase{"Sd", Mode::kSd, {.plan = {.lookahead = 4}, .max_batch = 4}},
        EmbeddingCase{"Ssd", Mode::kSsd, {.max_batch = 4, .prefill_chunk = 7}},
        // How far speculation gets, and so who is preempted, depends on time.
        EmbeddingCase{"SsdTinyPool",
                      Mode::kSsd,
                      {.max_batch = 7, .prefill_chunk = 16, .max_context = 192, .kv_tokens = 256},
                      true},
        EmbeddingCase{"ArTinyPool",
                      Mode::kAr,
                      {.max_batch = 7, .prefill_chunk = 16, .max_context = 192, .kv_tokens = 256},
                      true,
                      true}),
    [](const auto& test) { return test.param.name; });

TEST(Embedding, PreemptionCountsNoRowTwice) {
  for (std::size_t pooling = 0; pooling < 2; ++pooling) {
    const auto engine =
        Make(Mode::kAr, {.max_batch = 2, .prefill_chunk = 8, .prefix_cache = false});
    Collector collector;
    const auto id = Embed(*engine, PromptsOfAllLengths().back(), kPoolings[pooling], &collector);
    for (int round = 1; engine->Step(); ++round) {
      if (round == 3 || round == 7) ForcePreemption(*engine);
    }
    const Collector::Output& output = collector.outputs[id];
    EXPECT_EQ(output.stats.preemptions, 2);
    EXPECT_EQ(output.embeddings_told, 1);
    EXPECT_TRUE(output.embedding ==
                EmbeddingTruth()[(pooling + 1) * PromptsOfAllLengths().size() - 1]);
  }
}

// The states that tests/golden/make_states.py computed in float64, at length 1. In float32 the
// states agree within 2e-5 of their largest number (golden_test.cc).
TEST(Embedding, IsThatOfAnotherProgram) {
  std::ifstream file(std::string(FORETOKEN_SOURCE_DIR) + "/tests/golden/states.json");
  const auto golden = Json::Parse(file)["demo-target"];
  auto target = LoadModel({.path = BundledModel("demo-target")},
                          std::make_shared<Device>(CoreSet{TargetCore()}), Precision::kF32);
  ASSERT_TRUE(target.ok());
  const auto engine = Make(Mode::kAr, {.max_batch = 2}, {}, target->get());
  Collector collector;
  const auto prompt = golden["prompt_ids"].get<std::vector<Token>>();
  const std::pair<Pooling, std::string> poolings[] = {{Pooling::kMean, "mean"},
                                                      {Pooling::kLast, "last"}};
  for (const auto& [pooling, name] : poolings) {
    const auto id = Embed(*engine, prompt, pooling, &collector);
    engine->RunUntilIdle();
    auto expected = golden[name].get<std::vector<double>>();
    double squares = 0;
    for (const double value : expected) squares += value * value;
    for (double& value : expected) value /= std::sqrt(squares);
    const std::vector<float>& embedding = collector.outputs[id].embedding;
    const std::vector<double> own(embedding.begin(), embedding.end());
    EXPECT_THAT(own, testing::Pointwise(testing::DoubleNear(1e-5), expected)) << name;
  }
}

}  // namespace
}  // namespace foretoken
