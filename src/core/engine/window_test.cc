// Layers that see a window of positions and anchors, or remember in a state, keep no more than they
// need, and nothing is computed otherwise for that.

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "base/numbers/integers.h"
#include "base/threads/cores.h"
#include "core/backend/device.h"
#include "core/draft/registry.h"
#include "core/engine/engine.h"
#include "core/engine/prefix_transfer.h"
#include "core/engine/rules.h"
#include "core/model/model_testing.h"

namespace foretoken {
namespace {

constexpr int kWindowVocabulary = 64;

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
                                    .vocabulary = kWindowVocabulary,
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

std::vector<Token> RandomWindowTokens(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Token> tokens(count);
  for (Token& token : tokens) token = static_cast<Token>(random() % kWindowVocabulary);
  return tokens;
}

struct WindowCase {
  std::string name;
  ModelConfig (*config)(int max_positions);
};

void PrintTo(const WindowCase& test, std::ostream* out) { *out << test.name; }

class WindowTest : public testing::TestWithParam<WindowCase> {
 protected:
  std::unique_ptr<Model> Make(const ModelConfig& config, int seed = 1) {
    return SyntheticModel(config, static_cast<std::uint64_t>(seed), backend_.get());
  }

  // What follows `prompt` where all layers keep everything.
  std::vector<Token> Expected(Model* model, const std::vector<Token>& prompt, int count) {
    SequenceRunner runner(model, Int(prompt.size()) + count);
    const auto likeliest = [](const float* logits) {
      return static_cast<Token>(std::max_element(logits, logits + kWindowVocabulary) - logits);
    };
    const float* logits = runner.Append(prompt);
    std::vector<Token> tokens = {likeliest(logits + (prompt.size() - 1) * kWindowVocabulary)};
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
      const DrafterParts parts{.vocabulary = kWindowVocabulary,
                               .max_sequences = config.max_batch,
                               .max_context = SizesFor(config, target->config()).context,
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
  const auto prompt = RandomWindowTokens(32768, 3);
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
    prompts.push_back(RandomWindowTokens(200 + 40 * i, static_cast<unsigned>(i / 2)));
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

// All that an engine keeps of a text's beginning, block by block.
std::vector<std::vector<std::byte>> TakeOut(Engine& engine, const std::vector<Token>& text) {
  std::vector<std::vector<std::byte>> blocks;
  PrefixTransfer transfer(engine, {}, text);
  const std::int32_t count = transfer.Match();
  for (std::int32_t i = 0; i < count; ++i) {
    blocks.emplace_back(transfer.BytesOf(i, count));
    EXPECT_TRUE(transfer.CopyOut(i, count, blocks.back()));
    EXPECT_TRUE(transfer.AreSound(i, count, blocks.back()));
  }
  return blocks;
}

// Puts them into another engine; false where there is no room.
bool PutIn(Engine& engine, const std::vector<Token>& text,
           const std::vector<std::vector<std::byte>>& blocks) {
  PrefixTransfer transfer(engine, {}, text);
  const auto count = static_cast<std::int32_t>(blocks.size());
  for (std::int32_t i = transfer.Match(); i < count; ++i) {
    if (!transfer.CopyIn(i, count, blocks[i])) return false;
  }
  return transfer.Publish();
}

// What one engine has computed of a text another goes on from, with the tokens that it would have
// computed itself.
TEST_P(WindowTest, WhatOneEngineKeepsAnotherTakesIn) {
  constexpr int kOutput = 40;
  const auto model = Make(GetParam().config(1024));
  const std::shared_ptr<Model> draft = Make(GetParam().config(1024), 2);
  const auto prompt = RandomWindowTokens(700, 5);
  std::vector<Token> forked(prompt.begin(), prompt.begin() + 690);
  forked.push_back(static_cast<Token>((prompt[690] + 1) % kWindowVocabulary));
  const EngineConfig config{
      .plan = {.lookahead = 3}, .max_batch = 2, .prefill_chunk = 32, .max_context = 1024};
  const auto first = Open(model.get(), draft, config);
  Submit(first.get(), prompt, 1);
  Run(first.get());
  const auto blocks = TakeOut(*first, prompt);
  ASSERT_EQ(std::ssize(blocks), 699 / kBlockSize);
  EXPECT_TRUE(first->CheckIdle().ok());
  // Layers that see a window have the blocks that the next row sees, and no others.
  EXPECT_LT(blocks[10].size(), blocks.back().size());

  for (const bool drafts : {false, true}) {
    const auto second = Open(model.get(), drafts ? draft : nullptr, config);
    ASSERT_TRUE(PutIn(*second, prompt, blocks));
    EXPECT_TRUE(second->CheckIdle().ok());
    tokens_ = {};
    const SequenceId same = Submit(second.get(), prompt, kOutput);
    const SequenceId fork = Submit(second.get(), forked, kOutput);
    Run(second.get());
    EXPECT_EQ(tokens_.of[same], Expected(model.get(), prompt, kOutput));
    EXPECT_EQ(tokens_.of[fork], Expected(model.get(), forked, kOutput));
    EXPECT_EQ(tokens_.stats[same].cached_prompt_tokens, std::ssize(blocks) * kBlockSize);
    ASSERT_TRUE(PutIn(*second, prompt, blocks));  // It is there already.
    EXPECT_TRUE(second->CheckIdle().ok());
    EXPECT_EQ(ForgetPrefix(*second, {}, prompt), 0);  // Others go on behind it.
    std::vector<Token> whole = prompt;
    std::ranges::copy(tokens_.of[same], std::back_inserter(whole));
    EXPECT_GT(ForgetPrefix(*second, {}, whole), 0);
    EXPECT_TRUE(second->CheckIdle().ok());
  }
}

// Blocks that are held for a transfer go where a sequence has no others, and none of them is shared
// half copied.
TEST_P(WindowTest, ATransferGivesWayToSequences) {
  const auto model = Make(GetParam().config(1024));
  const EngineConfig config{
      .max_batch = 1, .prefill_chunk = 32, .max_context = 704, .kv_tokens = 704};
  const auto prompt = RandomWindowTokens(600, 5);
  const auto other = RandomWindowTokens(600, 6);
  const auto engine = Open(model.get(), nullptr, config);
  Submit(engine.get(), prompt, 1);
  Run(engine.get());
  const auto blocks = TakeOut(*engine, prompt);
  const auto count = static_cast<std::int32_t>(blocks.size());
  {
    PrefixTransfer out(*engine, {}, prompt);
    ASSERT_EQ(out.Match(), count);
    const SequenceId id = Submit(engine.get(), other, 8);
    while (engine->Step()) {
    }
    EXPECT_EQ(tokens_.of[id], Expected(model.get(), other, 8));
    std::vector<std::byte> block(out.BytesOf(0, count));
    EXPECT_FALSE(out.CopyOut(0, count, block));
  }
  ASSERT_TRUE(engine->CheckIdle().ok());
  {
    PrefixTransfer in(*engine, {}, prompt);
    std::int32_t index = in.Match();
    ASSERT_LT(index, count - 1);
    for (; index < count - 1; ++index) {
      ASSERT_TRUE(in.CopyIn(index, count, blocks[index]));
    }
    const SequenceId id = Submit(engine.get(), other, 8);
    while (engine->Step()) {
    }
    EXPECT_EQ(tokens_.of[id], Expected(model.get(), other, 8));
    EXPECT_FALSE(in.CopyIn(index, count, blocks[index]));
    EXPECT_FALSE(in.Publish());
  }
  EXPECT_TRUE(engine->CheckIdle().ok());
}

INSTANTIATE_TEST_SUITE_P(
    Layers, WindowTest,
    testing::Values(
        WindowCase{"Windowed", [](int positions) { return Windowed(100, 0, positions); }},
        WindowCase{"Anchored", [](int positions) { return Windowed(100, 33, positions); }},
        WindowCase{"Recurrent", Recurrent}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace foretoken
