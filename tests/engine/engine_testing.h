#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/speculation/modes_testing.h"
#include "door/assembly/loaded_model.h"
#include "door/assembly/make_engine.h"

namespace foretoken {

/// Collects what requests produce; one for many.
class Collector : public RequestListener {
 public:
  struct Output {
    std::vector<Token> tokens;
    std::vector<TokenOrigin> origins;
    std::string text;
    std::vector<std::vector<TokenLogprob>> logprobs;
    std::vector<std::vector<TokenLogprob>> prompt_logprobs;
    int prompts_told = 0;
    std::vector<float> embedding;
    int embeddings_told = 0;
    FinishReason reason = FinishReason::kCancelled;
    RequestStats stats;
    bool finished = false;
  };

  void OnPrompt(SequenceId sequence, const ScoredPrompt& prompt) override {
    Output& output = outputs[sequence];
    EXPECT_TRUE(output.tokens.empty());
    EXPECT_EQ(prompt.logprobs.size() + 1, prompt.tokens.size());
    output.prompt_logprobs.assign(prompt.logprobs.begin(), prompt.logprobs.end());
    ++output.prompts_told;
  }
  void OnEmbedding(SequenceId sequence, std::span<const float> embedding) override {
    Output& output = outputs[sequence];
    output.embedding.assign(embedding.begin(), embedding.end());
    ++output.embeddings_told;
  }
  void OnToken(SequenceId sequence, const EmittedToken& token) override {
    Output& output = outputs[sequence];
    output.tokens.push_back(token.token);
    output.origins.push_back(token.origin);
    output.text += token.text;
    if (token.logprobs != nullptr) output.logprobs.push_back(*token.logprobs);
  }
  void OnFinish(SequenceId sequence, FinishReason reason, const RequestStats& stats) override {
    Output& output = outputs[sequence];
    output.reason = reason;
    output.stats = stats;
    output.finished = true;
  }

  std::map<SequenceId, Output> outputs;
};

/// Whether this is a shard of an odd number. It has its cores the other way round, so that it and
/// one of an even number keep both cores of a small machine busy.
inline bool OddShard() {
  const char* shard = std::getenv("GTEST_SHARD_INDEX");
  return shard != nullptr && std::atoi(shard) % 2 == 1;
}

/// The core of targets.
inline int TargetCore() { return OddShard() ? AvailableCores().back() : AvailableCores().front(); }

/// The core of drafts that run beside a target: another one, where there are two.
inline int DraftCore() { return OddShard() ? AvailableCores().front() : AvailableCores().back(); }

/// The bundled pair, loaded once per test program.
inline std::string BundledModel(const std::string& name) {
  return std::string(FORETOKEN_SOURCE_DIR) + "/models/" + name;
}

inline LoadedModel* BundledTarget() {
  static const auto target = [] {
    auto loaded = LoadModel({.path = BundledModel("demo-target")},
                            std::make_shared<Device>(CoreSet{TargetCore()}), Precision::kBF16);
    EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message);
    return std::move(loaded).value();
  }();
  return target.get();
}

inline DraftOptions BundledDraft() {
  return {.source = {.path = BundledModel("demo-draft")}, .cores = {DraftCore()}};
}

/// An engine that offers one mode.
inline Result<std::unique_ptr<Engine>> MakeEngine(Mode mode, const EngineConfig& config,
                                                  LoadedModel* target, const DraftOptions& draft,
                                                  const Measuring& measuring = {}) {
  return MakeEngine(std::span(&mode, 1), config, target, std::span(&draft, 1), measuring);
}

/// The same where nothing is in its way; what is fails the test.
inline std::unique_ptr<Engine> Make(Mode mode, const EngineConfig& config,
                                    const DraftOptions& draft = BundledDraft(),
                                    LoadedModel* target = BundledTarget(),
                                    const Measuring& measuring = {}) {
  auto engine = MakeEngine(mode, config, target, draft, measuring);
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
  return std::move(engine).value();
}

/// The outputs of `ids`, in their order, once the engine has run dry.
inline std::vector<Collector::Output> Finish(Engine& engine, Collector* collector,
                                             const std::vector<SequenceId>& ids) {
  engine.RunUntilIdle();
  const Status idle = engine.CheckIdle();
  EXPECT_TRUE(idle.ok()) << (idle.ok() ? "" : idle.error().message);
  std::vector<Collector::Output> outputs;
  for (const SequenceId id : ids) outputs.push_back(collector->outputs[id]);
  return outputs;
}

/// Runs all prompts to the end, all submitted at once, and returns outputs in their order.
inline std::vector<Collector::Output> Generate(Engine& engine,
                                               const std::vector<std::vector<Token>>& prompts,
                                               const SamplingParams& sampling,
                                               const StopRules& stop) {
  Collector collector;
  std::vector<SequenceId> ids;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    SamplingParams own = sampling;
    own.seed += i;
    auto id = engine.Submit(
        {.prompt = prompts[i], .sampling = own, .stop = stop, .listener = &collector});
    EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
    ids.push_back(*id);
  }
  return Finish(engine, &collector, ids);
}

inline std::vector<std::vector<Token>> TokensOf(const std::vector<Collector::Output>& outputs) {
  std::vector<std::vector<Token>> tokens;
  for (const auto& output : outputs) tokens.push_back(output.tokens);
  return tokens;
}

/// The bundled target as a draft of itself.
inline ModelSource SelfSource(const std::string& own) {
  return {.path = BundledModel("demo-target"), .own_drafter = own};
}

inline std::vector<std::vector<Token>> StoryPrompts() {
  const char* texts[] = {
      "Once upon a time, there was a little girl named Lily.",
      "One day, a small dragon found a red ball in the park.",
      "Tom and his dog went to the sea. The dog was very",
      "The old man had a big garden with many",
      "Sara wanted to fly like a bird, so she",
  };
  std::vector<std::vector<Token>> prompts;
  for (const char* text : texts) {
    prompts.push_back(BundledTarget()->tokenizer->Encode(text, true, false));
  }
  return prompts;
}

/// These, one of a single token and a long one.
inline std::vector<std::vector<Token>> PromptsOfAllLengths() {
  auto prompts = StoryPrompts();
  prompts.push_back({prompts[0][0]});
  std::vector<Token> longest;
  while (longest.size() < 150) longest.insert(longest.end(), prompts[2].begin(), prompts[2].end());
  prompts.push_back(longest);
  return prompts;
}

}  // namespace foretoken
