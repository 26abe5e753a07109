// Drafts that are trained to draft, which read what the target's passes keep or say several
// positions in a pass: the same tokens come out in every setting, and what is drafted depends on
// the committed tokens and their true features only.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "assembly/engine_testing.h"
#include "assembly/speculator_testing.h"
#include "backend/device.h"
#include "base/clock.h"
#include "draft/model/draft_model.h"
#include "draft/registry.h"
#include "engine/rules.h"
#include "model/model_weights.h"

namespace foretoken {
namespace {

constexpr int kVocabulary = 24;  // So few that random drafts are sometimes right.
constexpr int kContext = 192;

ModelConfig Shape(int hidden, int layers) {
  return LlamaConfig({.hidden = hidden,
                      .intermediate = 2 * hidden,
                      .layers = layers,
                      .heads = 4,
                      .kv_heads = 2,
                      .head_dim = hidden / 4,
                      .vocabulary = kVocabulary,
                      .max_positions = kContext});
}

constexpr int kTargetHidden = 64;

struct Kind {
  std::string name;
  FeatureSpec feature;
  int hidden = kTargetHidden;
  ParallelSpec parallel = {};
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

FeatureSpec Context() {
  return {.join = FeatureSpec::Join::kContext,
          .points = {1, 3},
          .tapped = kTargetHidden,
          .reduced = true};
}

std::vector<Kind> Kinds() {
  using Join = FeatureSpec::Join;
  using TapNorm = FeatureSpec::TapNorm;
  return {{"eagle3",
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
            .head_blocks = 1},
           kTargetHidden,
           {.positions = 7, .mask_token = 0, .block = 7}},
          {"pard", {}, 32, {.positions = kMaxProposal, .mask_token = 7}},
          // Fewer than are asked for in places.
          {"pard_of_three", {}, 32, {.positions = 3, .mask_token = 7}}};
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

  ModelConfig DraftShape() const {
    ModelConfig shape = Shape(GetParam().hidden, 1);
    shape.feature = GetParam().feature;
    shape.parallel = GetParam().parallel;
    if (shape.feature.join == FeatureSpec::Join::kHeads) shape.layers.clear();
    for (LayerSpec& layer : shape.layers) {
      layer.attention.both_ways = shape.feature.join == FeatureSpec::Join::kContext;
    }
    return shape;
  }

  static std::vector<std::vector<Token>> Prompts() {
    std::vector<std::vector<Token>> prompts(6);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      // The first have a prefix in common, one is a single token.
      const std::size_t length = i == 5 ? 1 : 40 + 3 * i;
      for (std::size_t t = 0; t < length; ++t) {
        prompts[i].push_back(
            static_cast<Token>((t < 36 ? 7 * t + t * t : i + 5 * t) % kVocabulary));
      }
    }
    return prompts;
  }

  Run Decode(Mode mode, EngineConfig options, const SamplingParams& sampling,
             int preempt_every = 0) {
    options.plan.mode = mode;
    options.max_waiting = 16;
    options = CompleteOptions(options, target_.model->config());
    Proposers proposers;
    CheckedDrafter* drafter = nullptr;
    if (mode == Mode::kSd) {
      const std::shared_ptr<Model> draft(std::shared_ptr<Model>(), draft_.model.get());
      auto checked = std::make_unique<CheckedDrafter>(DrafterParts{
          .max_sequences = options.max_batch, .max_context = kContext, .draft = draft});
      drafter = checked.get();
      proposers.before[DrafterId::kModel] = std::move(checked);
    } else if (mode == Mode::kSsd) {
      proposers.speculator = StartSpeculator(options);
    }
    if (mode.drafts()) {
      const FeatureSpec& feature = GetParam().feature;
      proposers.taps = {.points = feature.points, .hidden = feature.tapped};
    }
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
                                   .stop = {.max_tokens = 60, .ignore_eos = true},
                                   .listener = &collector});
      EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
      ids.push_back(*id);
    }
    for (int step = 1; (*engine)->Step(); ++step) {
      if (preempt_every > 0 && step % preempt_every == 0) ForcePreemption(**engine);
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
                               ConfigureFor(options));
  }

  Device device_{{AvailableCores().front()}};
  Device draft_device_{{AvailableCores().back()}};
  Made target_{Shape(kTargetHidden, 4), 1, &device_};
  Made draft_{DraftShape(), 2, &device_};
  Made speculator_draft_{DraftShape(), 2, &draft_device_};
};

TEST_P(LearnedDraft, EmitsTheTokensOfArAndDraftsOfTrueFeatures) {
  for (const float temperature : {0.0F, 0.7F, 1.3F}) {
    const SamplingParams sampling{.temperature = temperature, .seed = 3};
    const Run truth = Decode(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, sampling);
    for (const int batch : {1, 3, 6}) {
      for (const bool prefix_cache : {false, true}) {
        const EngineConfig options{
            .plan = {.lookahead = 3}, .max_batch = batch, .prefix_cache = prefix_cache};
        const Run run = Decode(Mode::kSd, options, sampling);
        EXPECT_EQ(run.tokens, truth.tokens) << "T " << temperature << ", batch " << batch;
        EXPECT_GT(run.accepted, 0);
        EXPECT_GT(run.compared, 200);
      }
    }
  }
}

TEST_P(LearnedDraft, TreesEmitTheTokensOfAr) {
  for (const float temperature : {0.0F, 1.0F}) {
    const SamplingParams sampling{.temperature = temperature, .seed = 5};
    const Run truth = Decode(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, sampling);
    const EngineConfig options{.plan = {.lookahead = 4, .tree_width = 4, .max_nodes = 20},
                               .max_batch = 3};
    const Run run = Decode(Mode::kSd, options, sampling);
    EXPECT_EQ(run.tokens, truth.tokens) << "T " << temperature;
    EXPECT_GT(run.accepted, 50);
  }
}

TEST_P(LearnedDraft, PreemptionAndPrefixesInPiecesChangeNothing) {
  const SamplingParams sampling{.temperature = 0.9F, .seed = 8};
  const Run truth = Decode(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, sampling);
  for (const bool prefix_cache : {false, true}) {
    const EngineConfig options{
        .plan = {.lookahead = 3}, .max_batch = 3, .prefill_chunk = 7, .prefix_cache = prefix_cache};
    const Run run = Decode(Mode::kSd, options, sampling, /*preempt_every=*/9);
    EXPECT_EQ(run.tokens, truth.tokens);
    EXPECT_GT(run.accepted, 0);
    EXPECT_GT(run.compared, 200);
  }
}

TEST_P(LearnedDraft, SsdEmitsTheTokensOfAr) {
  for (const float temperature : {0.0F, 1.0F}) {
    const SamplingParams sampling{.temperature = temperature, .seed = 4};
    const Run truth = Decode(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, sampling);
    for (const int batch : {1, 3}) {
      for (const int tree_width : {1, 2}) {
        EngineConfig options{.plan = {.lookahead = 2, .tree_width = tree_width},
                             .max_batch = batch};
        options.plan.primary = options.plan.after_fallback = UniformFanout(8, 2);
        const Run run = Decode(Mode::kSsd, options, sampling, batch == 3 ? 11 : 0);
        EXPECT_EQ(run.tokens, truth.tokens) << "T " << temperature << ", batch " << batch;
        EXPECT_GT(run.accepted, 0);
        EXPECT_GT(run.hits, 0);
      }
    }
  }
}

// What is drafted just in time is drafted of true features, as in SD.
TEST_P(LearnedDraft, JustInTimeIsWhatSdProposes) {
  const SamplingParams sampling{.temperature = 0.9F, .seed = 6};
  EngineConfig options{
      .plan = {.lookahead = 3, .fallback = Fallback::kJit}, .max_cache_budget = 1, .max_batch = 1};
  const Run sd = Decode(Mode::kSd, options, sampling);
  // Next to nothing is prepared.
  options.plan.primary = options.plan.after_fallback = {.at = {0, 0, 0, 1}};
  const Run run = Decode(Mode::kSsd, options, sampling);
  EXPECT_EQ(run.tokens, sd.tokens);
  EXPECT_LT(run.hits, run.rounds / 20);
  // Rounds before the speculator has read the prompt have no proposal.
  EXPECT_NEAR(static_cast<double>(run.accepted), static_cast<double>(sd.accepted),
              0.1 * static_cast<double>(sd.accepted));
}

// The speculator alone: what it prepares, round by round, against what is worked out afresh.
class LearnedSpeculator : public LearnedDraft {
 protected:
  static constexpr int kLookahead = 3;
  static constexpr int kFanout = 4;

  LearnedSpeculator() {
    EngineConfig options{.plan = plan_, .max_batch = 1};
    options.plan.mode = Mode::kSsd;
    client_ = StartSpeculator(CompleteOptions(options, target_.model->config()));
    KvShape shape = target_.model->KvShapeFor(kContext / kBlockSize);
    shape.taps = {.points = GetParam().feature.points, .hidden = kTargetHidden};
    kv_ = target_.backend->AllocateKv(shape);
    for (int block = 0; block < shape.blocks; ++block) sequence_.blocks.push_back(block);
  }

  TapRows taps() const { return {&kv_.taps, &sequence_}; }

  // The target computes all tokens but the last.
  void RunTarget() {
    ForwardBatch batch;
    batch.block_tables.push_back(sequence_.blocks.data());
    for (; sequence_.committed + 1 < std::ssize(tokens_); ++sequence_.committed) {
      const std::int32_t position = sequence_.committed;
      batch.rows.push_back({.token = tokens_[position],
                            .place = {position, sequence_.SlotOf(position), 0, position + 1, 0},
                            .wants_logits = false});
    }
    (void)target_.model->Forward(batch, kv_);
  }

  // What masks say behind the committed tokens and `path`, whose states are not there yet.
  std::vector<Token> InMasks(const std::vector<Token>& path, int count) {
    DraftModel draft(draft_.model.get(), 1, kContext, 0);
    DraftTrunk trunk;
    BeginTrunk(&trunk, &draft);
    Proposal walked;
    for (const Token token : path) walked.Extend(token);
    trunk.tree.Assign(walked);
    RowPlacer placer = draft.PlacerFor(trunk.kv);
    trunk.AppendCommittedRows(kContext, &placer, &draft.batch);
    for (int node = 1; node <= walked.size(); ++node) {
      trunk.AppendNodeRow(node, &placer, &draft.batch);
    }
    for (int depth = 1; depth < count; ++depth) {
      draft.batch.rows.push_back({.token = GetParam().parallel.mask_token,
                                  .place = placer.Committed(trunk.root() + walked.size() + depth)});
    }
    const Logits logits = draft.model->Forward(draft.batch, draft.kv);
    return BestByDepth(draft, logits.Row(walked.size(), kVocabulary), path, count);
  }

  void BeginTrunk(DraftTrunk* trunk, DraftModel* draft) {
    trunk->Begin(*draft, false);
    trunk->Commit(std::span<const Token>(tokens_).subspan(draft->tokens_without_row()), *draft);
    if (draft->reads_features()) trunk->features.Append(taps(), trunk->readable());
    EXPECT_TRUE(trunk->Reserve(kContext, *draft));
  }

  // The chain of the best tokens behind `path` by rows of logits of one depth each.
  std::vector<Token> BestByDepth(DraftModel& draft, Logits logits, std::vector<Token> path,
                                 int count) {
    const TokenHistory history(kVocabulary);
    std::vector<Token> chain;
    for (int depth = 0; depth < count; ++depth) {
      const Ranking best = RankRow(draft, logits.Row(depth, kVocabulary), sampling_, history,
                                   {.root = tokens_.size() - 1, .path = path});
      chain.push_back(best[0]);
      path.push_back(best[0]);
    }
    return chain;
  }

  // What a block says that begins at the last committed token and goes on with `path`.
  std::vector<Token> InBlock(const std::vector<Token>& path, int count) {
    DraftModel draft(draft_.model.get(), 1, kContext, 0);
    DraftTrunk trunk;
    BeginTrunk(&trunk, &draft);
    RowPlacer placer = draft.PlacerFor(trunk.kv);
    trunk.AppendCommittedRows(kContext, &placer, &draft.batch);
    const std::size_t first = draft.batch.rows.size();
    const int known = static_cast<int>(path.size());
    trunk.AppendMaskRows(count, &placer, &draft.batch);
    for (int row = 0; row < GetParam().parallel.block; ++row) {
      ForwardRow& each = draft.batch.rows[first + static_cast<std::size_t>(row)];
      if (row > 0 && row <= known) each.token = path[static_cast<std::size_t>(row - 1)];
      each.wants_logits = GetParam().parallel.Says(row, count, known);
    }
    const Logits logits = draft.model->Forward(draft.batch, draft.kv);
    return BestByDepth(draft, logits, path, count);
  }

  // The chain of the draft's best tokens behind the committed ones and `path`, of true features
  // as far as they go and of its own states from there on.
  std::vector<Token> Chain(const std::vector<Token>& path, int count) {
    if (GetParam().parallel.block > 0) return InBlock(path, count);
    if (GetParam().parallel.there()) return InMasks(path, count);
    DraftModel draft(draft_.model.get(), 1, kContext, 0);
    DraftTrunk trunk;
    trunk.Begin(draft, false);
    trunk.Commit(std::span<const Token>(tokens_).subspan(1), draft);
    trunk.features.Append(taps(), trunk.committed());
    Proposal walked;
    for (const Token token : path) walked.Extend(token);
    std::vector<Token> chain;
    TokenHistory history(kVocabulary);
    for (int node = 0; std::ssize(chain) < count; ++node) {
      trunk.tree.Assign(walked);
      EXPECT_TRUE(trunk.Reserve(kContext, draft));
      draft.batch.Clear();
      RowPlacer placer = draft.PlacerFor(trunk.kv);
      if (node == 0) {
        trunk.AppendCommittedRows(kContext, &placer, &draft.batch);
      } else {
        trunk.AppendNodeRow(node, &placer, &draft.batch);
      }
      const Logits logits = draft.model->Forward(draft.batch, draft.kv);
      trunk.TakeState(node, draft.model->states());
      const auto before = PathTokens(walked, node);
      const Ranking best =
          RankRow(draft, logits, sampling_, history,
                  {.root = tokens_.size() - 1, .path = before, .children = 1, .candidates = 0});
      if (node < std::ssize(path)) continue;
      chain.push_back(best[0]);
      walked.Extend(best[0]);
    }
    return chain;
  }

  // Once everything is prepared at `node` of the proposal, which is a chain.
  std::vector<CacheAnswer> PreparedAt(int node) {
    const std::int64_t deadline = NowNs() + 20'000'000'000;
    std::vector<CacheAnswer> prepared;
    while (NowNs() < deadline) {
      client_->Poll();
      std::vector<Token> bonuses;
      client_->PreparedAt(1, node, &bonuses);
      prepared.clear();
      for (const Token bonus : bonuses) {
        prepared.push_back(client_->Lookup(1, {node, bonus}));
        if (prepared.back().proposal.size() < kLookahead) prepared.pop_back();
      }
      if (prepared.size() == kFanout) return prepared;
    }
    ADD_FAILURE() << "only " << prepared.size() << " branches after 20 s";
    return prepared;
  }

  void CheckAt(int node, const Proposal& proposal) {
    for (const CacheAnswer& answer : PreparedAt(node)) {
      std::vector<Token> path;
      for (const Token token : PathTokens(proposal, node)) path.push_back(token);
      path.push_back(answer.outcome.bonus);
      EXPECT_EQ(std::vector(answer.proposal.tokens.begin(), answer.proposal.tokens.end()),
                Chain(path, kLookahead))
          << "behind " << tokens_.size() << " tokens, at node " << node;
    }
  }

  SpeculationPlan plan_{.mode = Mode::kSsd,
                        .lookahead = kLookahead,
                        .primary = UniformFanout(kFanout, kLookahead),
                        .after_fallback = UniformFanout(kFanout, kLookahead)};
  SamplingParams sampling_{.temperature = 1.0F, .seed = 12};
  std::vector<Token> tokens_ = Prompts()[0];
  SequenceKv sequence_;
  KvStore kv_;
  std::unique_ptr<SpeculatorClient> client_;
};

TEST_P(LearnedSpeculator, PreparesWhatFollowsFromTrueFeaturesAndItsOwnStates) {
  RunTarget();
  client_->Open({.sequence = 1,
                 .tokens = tokens_,
                 .prompt_tokens = static_cast<std::int32_t>(tokens_.size()),
                 .sampling = &sampling_,
                 .plan = &plan_,
                 .taps = taps()});
  Proposal proposal;
  for (int round = 0; round < 6; ++round) {
    CheckAt(0, proposal);
    // Where the proposal is another's, all of its nodes follow from the root. Where it was
    // prepared, the rows that were stay, made before the root's true feature was there; of drafts
    // that say several positions in a pass none do.
    const bool follow = proposal.source == ProposalSource::kNgram || GetParam().parallel.there();
    for (int node = 1; follow && node <= proposal.size(); ++node) {
      CheckAt(node, proposal);
    }
    const int node = std::min(round % 3, static_cast<int>(proposal.size()));
    const CacheAnswer taken = PreparedAt(node).front();
    std::vector<Token> emitted;
    for (const Token token : PathTokens(proposal, node)) emitted.push_back(token);
    emitted.push_back(taken.outcome.bonus);
    if (round % 2 == 0) {
      proposal = taken.proposal;
    } else {
      proposal.Clear();
      proposal.Extend((taken.proposal.tokens[0] + 1) % kVocabulary);
      proposal.Extend(9);
      proposal.source = ProposalSource::kNgram;
    }
    tokens_.insert(tokens_.end(), emitted.begin(), emitted.end());
    RunTarget();
    client_->SendOutcome(1, taken.outcome, emitted, proposal, plan_, false, taps());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LearnedSpeculator, testing::ValuesIn(Kinds()),
                         [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(Kinds, LearnedDraft, testing::ValuesIn(Kinds()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace foretoken
