#pragma once

// Drafts that are trained to draft, which read what the target's passes keep or say several
// positions in a pass: small ones of random weights, and engines that draft with them.

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/device.h"
#include "core/draft/registry.h"
#include "core/model/model_weights.h"
#include "tests/engine/engine_testing.h"
#include "tests/engine/speculator_testing.h"

namespace foretoken::learned_testing {

inline constexpr int kVocabulary = 24;  // So few that random drafts are sometimes right.
inline constexpr int kContext = 192;

inline ModelConfig Shape(int hidden, int layers) {
  return LlamaConfig({.hidden = hidden,
                      .intermediate = 2 * hidden,
                      .layers = layers,
                      .heads = 4,
                      .kv_heads = 2,
                      .head_dim = hidden / 4,
                      .vocabulary = kVocabulary,
                      .max_positions = kContext});
}

inline constexpr int kTargetHidden = 64;

struct Kind {
  std::string name;
  FeatureSpec feature;
  int hidden = kTargetHidden;
  ParallelSpec parallel = {};
  MarkovSpec markov = {};
};

inline std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

inline FeatureSpec Context() {
  return {.join = FeatureSpec::Join::kContext,
          .points = {1, 3},
          .tapped = kTargetHidden,
          .reduced = true};
}

// Sequential ones, which read the state after the final norm.
inline FeatureSpec Heads(int heads) {
  return {.join = FeatureSpec::Join::kSequentialHeads,
          .points = {TapShape::kFinalState},
          .tapped = kTargetHidden,
          .leaves_normed = true,
          .heads = heads,
          .head_blocks = 2,
          .output_norm = false};
}

inline FeatureSpec BehindALayer(FeatureSpec heads) {
  heads.output_norm = true;
  return heads;
}

inline std::vector<Kind> Kinds() {
  using Join = FeatureSpec::Join;
  using TapNorm = FeatureSpec::TapNorm;
  return {
      {"eagle3",
       {.join = Join::kAttended, .points = {1, 2, 3}, .tapped = kTargetHidden, .reduced = true},
       32},
      {"eagle3_with_flags",
       {.join = Join::kAttended,
        .points = {0, 2, 4},
        .tapped = kTargetHidden,
        .reduced = true,
        .tap_norm = TapNorm::kEachPoint,
        .normed_stream = true,
        .leaves_normed = true}},
      {"eagle1",
       {.join = Join::kProjected,
        .points = {TapShape::kFinalState},
        .tapped = kTargetHidden,
        .bias = true,
        .first_norm = false,
        .output_norm = false}},
      {"mtp",
       {.join = Join::kProjected,
        .points = {4},
        .tapped = kTargetHidden,
        .normed = true,
        .feature_first = true}},
      {"dflash",
       Context(),
       kTargetHidden,
       {.positions = 7, .mask_token = 7, .block = 8, .in_place = true}},
      {"dflash_that_says_from_the_last_token",
       Context(),
       kTargetHidden,
       {.positions = 8, .mask_token = 7, .block = 8}},
      {"dflash_of_two",
       Context(),
       kTargetHidden,
       {.positions = 2, .mask_token = 7, .block = 3, .in_place = true}},
      {"dspark",
       Context(),
       kTargetHidden,
       {.positions = 8, .mask_token = 7, .block = 8},
       {.rank = 8, .kind = MarkovSpec::Kind::kGated}},
      {"dspark_recurrent_and_confident",
       Context(),
       kTargetHidden,
       {.positions = 6, .mask_token = 7, .block = 6},
       {.rank = 8,
        .kind = MarkovSpec::Kind::kRecurrent,
        .confidence = true,
        .confidence_reads_tokens = true}},
      {"peagle",
       {.join = Join::kAttended,
        .points = {1, 2, 3},
        .tapped = kTargetHidden,
        .reduced = true,
        .masked = true},
       32,
       {.positions = kMaxProposal, .mask_token = 7}},
      {"medusa",
       {.join = Join::kHeads,
        .points = {TapShape::kFinalState},
        .tapped = kTargetHidden,
        .heads = 7,
        .head_blocks = 1,
        .output_norm = false},
       kTargetHidden,
       {.positions = 7, .mask_token = 0, .block = 7}},
      {"extra_heads",
       {.join = Join::kLayerHeads, .points = {3}, .tapped = kTargetHidden, .leaves_normed = true},
       kTargetHidden,
       {.positions = 7, .mask_token = 0, .block = 7}},
      {"hydra", Heads(8), kTargetHidden},
      {"hydra_behind_a_layer", BehindALayer(Heads(9)), kTargetHidden},
      {"pard", {}, 32, {.positions = kMaxProposal, .mask_token = 7}},
      // Fewer than are asked for in places.
      {"pard_of_three", {}, 32, {.positions = 3, .mask_token = 7}}};
}

inline ModelConfig ShapeOf(const Kind& kind) {
  ModelConfig shape = Shape(kind.hidden, 1);
  shape.feature = kind.feature;
  shape.parallel = kind.parallel;
  shape.markov = kind.markov;
  if (shape.feature.join == FeatureSpec::Join::kLayerHeads) {
    shape.layers.assign(shape.parallel.block, shape.layers.front());
  }
  if (shape.feature.has_heads() && !shape.feature.output_norm) shape.layers.clear();
  for (LayerSpec& layer : shape.layers) {
    layer.attention.both_ways = shape.feature.join == FeatureSpec::Join::kContext;
  }
  return shape;
}

inline TapShape TapsOf(const Kind& kind) {
  return {.points = kind.feature.points, .hidden = kind.feature.tapped};
}

// The first have a prefix in common, one is a single token.
inline std::vector<std::vector<Token>> Prompts() {
  std::vector<std::vector<Token>> prompts(6);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::size_t length = i == 5 ? 1 : 40 + 3 * i;
    for (std::size_t t = 0; t < length; ++t) {
      prompts[i].push_back(static_cast<Token>((t < 36 ? 7 * t + t * t : i + 5 * t) % kVocabulary));
    }
  }
  return prompts;
}

// A model on its own backend, all on one device.
struct Made {
  Made(const ModelConfig& config, std::uint64_t seed, Device* device)
      : backend(device->MakeBackend(Precision::kF32)),
        model(SyntheticWeights(config, seed, backend.get())->MakeModel(backend.get())) {}
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};

// Proposes as a draft model does, and checks that one that has seen nothing before would propose
// the same: what was proposed before, and of which features, has left nothing.
class CheckedDrafter final : public Drafter {
 public:
  explicit CheckedDrafter(DrafterParts parts)
      : parts_(std::move(parts)), drafter_(MakeModelDrafter(parts_)) {}

  void Propose(std::span<DraftContext> contexts) override {
    drafter_->Propose(contexts);
    for (const DraftContext& context : contexts) {
      DraftContext same = context;
      Proposal proposal;
      same.proposal = &proposal;
      MakeModelDrafter(parts_)->Propose(std::span(&same, 1));
      // Trees take the shape that past acceptance suggests.
      if (context.tree_width > 1) continue;
      const Proposal& made = *context.proposal;
      EXPECT_EQ(std::vector(made.tokens.begin(), made.tokens.end()),
                std::vector(proposal.tokens.begin(), proposal.tokens.end()))
          << "behind " << context.tokens.size() << " tokens";
      compared_ += proposal.size();
    }
  }
  void Forget(SequenceId sequence) override { drafter_->Forget(sequence); }

  int compared() const { return compared_; }

 private:
  DrafterParts parts_;
  std::unique_ptr<Drafter> drafter_;
  int compared_ = 0;
};

class LearnedDraft : public testing::TestWithParam<Kind> {
 protected:
  struct Run {
    std::vector<std::vector<Token>> tokens;
    std::int64_t rounds = 0;
    std::int64_t proposed = 0;
    std::int64_t accepted = 0;
    std::int64_t hits = 0;
    int compared = 0;
  };

  Run Decode(Mode mode, EngineConfig options, const SamplingParams& sampling, int preempt_every = 0,
             int max_tokens = 44) {
    options.plan.mode = mode;
    options.max_waiting = 16;
    Proposers proposers;
    CheckedDrafter* drafter = nullptr;
    SpeculatorClient* client = nullptr;
    if (mode == Mode::kSd) {
      const std::shared_ptr<Model> draft(std::shared_ptr<Model>(), draft_.model.get());
      auto checked = std::make_unique<CheckedDrafter>(DrafterParts{
          .max_sequences = options.max_batch, .max_context = kContext, .draft = draft});
      drafter = checked.get();
      proposers.before[DrafterId::kModel] = std::move(checked);
    } else if (mode == Mode::kSsd) {
      proposers.speculator = StartSpeculator(options);
      client = proposers.speculator.get();
    }
    if (mode.drafts()) proposers.taps[DrafterId::kModel] = TapsOf(GetParam());
    auto engine =
        CreateEngine(options, target_.model.get(), &device_, nullptr, std::move(proposers));
    EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
    Collector collector;
    std::vector<SequenceId> ids;
    std::uint64_t seed = sampling.seed;
    for (const auto& prompt : Prompts()) {
      SamplingParams own = sampling;
      own.seed = seed++;
      auto id = (*engine)->Submit({.prompt = prompt,
                                   .sampling = own,
                                   .stop = {.max_tokens = max_tokens, .ignore_eos = true},
                                   .listener = &collector});
      EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
      ids.push_back(*id);
    }
    for (int step = 1; (*engine)->Step(); ++step) {
      if (preempt_every > 0 && step % preempt_every == 0) ForcePreemption(**engine);
      // A draft that reads states is told of a sequence in the round behind its first token.
      if (awaits_speculator_ && client != nullptr) AwaitPrepared(*client, collector, 2);
    }
    Run run;
    for (const SequenceId id : ids) {
      const RequestStats& stats = collector.outputs[id].stats;
      run.tokens.push_back(collector.outputs[id].tokens);
      run.rounds += stats.rounds;
      run.proposed += stats.proposed;
      run.accepted += stats.accepted;
      run.hits += stats.hits_full + stats.hits_partial;
    }
    if (drafter != nullptr) run.compared = drafter->compared();
    return run;
  }

  std::unique_ptr<SpeculatorClient> StartSpeculator(const EngineConfig& options) {
    return StartTestSpeculator(speculator_draft_.model.get(), &draft_device_,
                               ConfigureFor(options, target_.model->config()));
  }

  bool awaits_speculator_ = false;  // Between steps: else what hits is a question of time.
  Device device_{{TargetCore()}};
  Device draft_device_{{DraftCore()}};
  Made target_{Shape(kTargetHidden, 4), 1, &device_};
  Made draft_{ShapeOf(GetParam()), 2, &device_};
  Made speculator_draft_{ShapeOf(GetParam()), 2, &draft_device_};
};

}  // namespace foretoken::learned_testing
