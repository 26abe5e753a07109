// Layers that see a window of positions and anchors, or remember in a state, keep no more than they
// need, and nothing is computed otherwise for that.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "backend/device.h"
#include "base/cores.h"
#include "draft/registry.h"
#include "engine/engine.h"
#include "model/model_testing.h"

namespace foretoken {
namespace {

constexpr int kVocabulary = 64;

class Tokens : public RequestListener {
 public:
  void OnToken(SequenceId sequence, const EmittedToken& token) override {
    of[sequence].push_back(token.token);
  }
  void OnFinish(SequenceId sequence, FinishReason /*reason*/, const RequestStats& all) override {
    stats[sequence] = all;
  }

  std::map<SequenceId, std::vector<Token>> of;
  std::map<SequenceId, RequestStats> stats;
};

// Layers see `window` positions and so many first ones, but for the last one, which sees all.
ModelConfig Windowed(int window, int anchors, int max_positions) {
  ModelConfig config = LlamaConfig({.hidden = 32,
                                    .intermediate = 48,
                                    .layers = 3,
                                    .heads = 1,
                                    .kv_heads = 1,
                                    .head_dim = 16,
                                    .vocabulary = kVocabulary,
                                    .max_positions = max_positions});
  for (int layer = 0; layer < 2; ++layer) {
    config.layers[layer].attention.window = window;
    config.layers[layer].attention.anchors = anchors;
  }
  return config;
}

// Layers remember in states, but for the last one, which sees all.
ModelConfig Recurrent(int max_positions) {
  ModelConfig config = Windowed(0, 0, max_positions);
  for (int layer = 0; layer < 2; ++layer) {
    config.layers[layer].attention = {};
    config.layers[layer].delta = {
        .key_heads = 1, .value_heads = 2, .key_dim = 8, .value_dim = 16, .taps = 4};
  }
  config.layers[2].attention.output_gate = true;
  return config;
}

std::vector<Token> RandomTokens(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Token> tokens(static_cast<std::size_t>(count));
  for (Token& token : tokens) token = static_cast<Token>(random() % kVocabulary);
  return tokens;
}

struct Case {
  std::string name;
  ModelConfig (*config)(int max_positions);
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class WindowTest : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Model> Make(const ModelConfig& config, int seed = 1) {
    return SyntheticModel(config, static_cast<std::uint64_t>(seed), backend_.get());
  }

  // What follows `prompt` where all layers keep everything.
  std::vector<Token> Expected(Model* model, const std::vector<Token>& prompt, int count) {
    SequenceRunner runner(model, static_cast<int>(prompt.size()) + count);
    const auto likeliest = [](const float* logits) {
      return static_cast<Token>(std::max_element(logits, logits + kVocabulary) - logits);
    };
    const float* logits = runner.Append(prompt);
    std::vector<Token> tokens = {likeliest(logits + (prompt.size() - 1) * kVocabulary)};
    while (std::ssize(tokens) < count) {
      tokens.push_back(likeliest(runner.Append({&tokens.back(), 1})));
    }
    return tokens;
  }

  // An engine that drafts with a model, if there is one.
  std::unique_ptr<Engine> Open(Model* target, std::shared_ptr<Model> draft, EngineConfig config) {
    Proposers proposers;
    if (draft != nullptr) {
      config.plan.mode = Mode::kSd;
      const DrafterParts parts{.vocabulary = kVocabulary,
                               .max_sequences = config.max_batch,
                               .max_context = config.max_context,
                               .draft = std::move(draft)};
      proposers.before[DrafterId::kModel] = MakeDrafter(DrafterId::kModel, parts);
    }
    auto engine = CreateEngine(std::move(config), target, &device_, nullptr, std::move(proposers));
    EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
    return std::move(engine).value();
  }

  SequenceId Submit(Engine* engine, const std::vector<Token>& prompt, int count) {
    Request request{.prompt = prompt, .listener = &tokens_};
    request.sampling.temperature = 0;
    request.stop.max_tokens = count;
    const auto id = engine->Submit(std::move(request));
    EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
    return *id;
  }

  // Returns the most recent parts that were in use after any step.
  std::int64_t Run(Engine* engine) {
    std::int64_t most = 0;
    while (engine->Step()) most = std::max(most, engine->recent_kv_usage().used);
    const Status idle = engine->CheckIdle();
    EXPECT_TRUE(idle.ok()) << (idle.ok() ? "" : idle.error().message);
    return most;
  }

  Device device_{CoreSet{AvailableCores().front()}};
  std::unique_ptr<Backend> backend_ = device_.MakeBackend(Precision::kF32);
  Tokens tokens_;
};

TEST_P(WindowTest, WhatIsKeptIsBoundedAt32kTokens) {
  constexpr int kContext = 32768 + 64;
  constexpr int kOutput = 48;
  const auto model = Make(GetParam().config(kContext));
  const std::shared_ptr<Model> draft = Make(GetParam().config(kContext));
  const auto prompt = RandomTokens(32768, 3);
  const auto expected = Expected(model.get(), prompt, kOutput);

  // The target drafts for itself: it is always right if its own KV is right too.
  const auto engine = Open(
      model.get(), draft,
      {.plan = {.lookahead = 4}, .max_batch = 1, .prefill_chunk = 128, .max_context = kContext});
  const SequenceId first = Submit(engine.get(), prompt, kOutput);
  // Rows reach 4 blocks back, and to anchors in 2; a pass adds a chunk of 4 blocks or a proposal.
  EXPECT_LE(Run(engine.get()), 10 + BlocksFor(AnchorsOf(model->config())));
  EXPECT_EQ(tokens_.of[first], expected);
  EXPECT_EQ(tokens_.stats[first].accepted, tokens_.stats[first].proposed);
  EXPECT_GT(tokens_.stats[first].accepted, kOutput / 2);
  EXPECT_EQ(engine->kv_usage().total, BlocksFor(kContext + 1));
  EXPECT_LE(engine->recent_kv_usage().total, 32 + 2 * BlocksFor(AnchorsOf(model->config())));

  // Its end is still in the prefix cache, and so all before can be used.
  const SequenceId second = Submit(engine.get(), prompt, kOutput);
  Run(engine.get());
  EXPECT_EQ(tokens_.of[second], expected);
  EXPECT_EQ(tokens_.stats[second].cached_prompt_tokens, 32768 - kBlockSize);
}

// Sequences that share prefixes and preempt each other, with trees that are mostly rejected.
TEST_P(WindowTest, PreemptionAndPrefixesKeepTheTokens) {
  constexpr int kOutput = 60;
  const auto model = Make(GetParam().config(1024));
  std::vector<std::vector<Token>> prompts;
  for (int i = 0; i < 8; ++i) {
    prompts.push_back(RandomTokens(200 + 40 * i, static_cast<unsigned>(i / 2)));
    prompts.back().push_back(static_cast<Token>(i));
  }
  std::vector<std::vector<Token>> expected;
  for (const auto& prompt : prompts) expected.push_back(Expected(model.get(), prompt, kOutput));
  for (const bool prefix_cache : {false, true}) {
    for (const bool drafts : {false, true}) {
      const std::shared_ptr<Model> draft = drafts ? Make(GetParam().config(1024), 2) : nullptr;
      const auto engine = Open(model.get(), draft,
                               {.plan = {.lookahead = 3, .tree_width = 2, .max_nodes = 9},
                                .max_batch = 4,
                                .prefill_chunk = 32,
                                .max_context = 1024,
                                .kv_tokens = 2880,
                                .prefix_cache = prefix_cache});
      ASSERT_GT(engine->recent_kv_usage().total, 0);
      tokens_ = {};
      std::vector<SequenceId> ids;
      for (const auto& prompt : prompts) ids.push_back(Submit(engine.get(), prompt, kOutput));
      for (int step = 0; engine->Step(); ++step) {
        if (step % 23 == 22) ForcePreemption(*engine);
      }
      EXPECT_TRUE(engine->CheckIdle().ok());
      int preemptions = 0;
      int cached = 0;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(tokens_.of[ids[i]], expected[i]) << i;
        preemptions += tokens_.stats[ids[i]].preemptions;
        cached += tokens_.stats[ids[i]].cached_prompt_tokens;
      }
      EXPECT_GT(preemptions, 0);
      EXPECT_EQ(cached > 0, prefix_cache);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layers, WindowTest,
    testing::Values(Case{"Windowed", [](int positions) { return Windowed(100, 0, positions); }},
                    Case{"Anchored", [](int positions) { return Windowed(100, 33, positions); }},
                    Case{"Recurrent", Recurrent}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace foretoken
