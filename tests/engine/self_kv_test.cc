// Drafts that are some of the target's layers, on the target's keys and values: what they compute,
// what they leave untouched, and that the engine emits the tokens of AR with them.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/draft/registry.h"
#include "core/kv/tree_kv.h"
#include "core/model/model_testing.h"
#include "door/assembly/open_draft.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

// A model that counts the rows of its passes.
class CountingModel final : public Model {
 public:
  explicit CountingModel(std::unique_ptr<Model> model) : model_(std::move(model)) {}

  const ModelConfig& config() const override { return model_->config(); }
  Backend& backend() const override { return model_->backend(); }
  std::size_t weight_bytes() const override { return model_->weight_bytes(); }
  void Reserve(std::size_t most, std::size_t wanted) override { model_->Reserve(most, wanted); }
  using Model::Forward;
  Logits Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) override {
    rows += batch.rows.size();
    return model_->Forward(batch, kv, interrupt);
  }
  const float* states() const override { return model_->states(); }

  int rows = 0;

 private:
  std::unique_ptr<Model> model_;
};

std::shared_ptr<CountingModel> CountedDraft(const std::string& own) {
  const LoadedModel& target = *BundledTarget();
  const auto opened = OpenModel(SelfSource(own));
  EXPECT_TRUE(opened.ok());
  return std::make_shared<CountingModel>(
      SharedWeights(*opened, Precision::kBF16, target)->MakeModel(target.backend.get()));
}

// A sequence of the target, whose passes keep taps as well.
class TargetSequence {
 public:
  static constexpr int kNodes = 16;

  explicit TargetSequence(std::vector<Token> tokens)
      : tokens_(std::move(tokens)),
        model_(BundledTarget()->model.get()),
        cache_({.blocks = 16}, /*prefix_cache=*/false),
        store_(AllocateKv(model_->KvShapeFor(0, {.points = {2, TapShape::kFinalState},
                                                 .hidden = model_->config().hidden}),
                          cache_, &model_->backend())) {
    Run(root());
  }

  std::int32_t root() const { return static_cast<std::int32_t>(tokens_.size()) - 1; }
  TargetKv kv() { return {.store = &store_, .sequence = &kv_}; }
  const std::vector<Token>& tokens() const { return tokens_; }
  void Append(std::span<const Token> tokens) {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    Run(root());
  }
  // What follows the last token, whose row this computes without committing it.
  std::vector<float> LogitsOfRoot() {
    Place(root(), root() + 1);
    const float* logits = model_->Forward(batch_, store_).values;
    return {logits, logits + model_->config().vocabulary};
  }
  std::vector<char> Taps() const {
    const char* bytes = store_.taps.rows.as<char>();
    return {bytes, bytes + store_.taps.rows.bytes()};
  }

 private:
  void Place(std::int32_t begin, std::int32_t end) {
    batch_.Clear();
    RowPlacer placer(kv_, &batch_.block_tables, &batch_.tail_slots);
    for (std::int32_t position = begin; position < end; ++position) {
      batch_.rows.push_back({.token = tokens_[position],
                             .place = placer.Committed(position),
                             .wants_logits = position + 1 == end});
    }
  }
  void Run(std::int32_t end) {
    ASSERT_TRUE(cache_.Reserve(end + 1 + kNodes, &kv_));
    Place(kv_.committed, end);
    (void)model_->Forward(batch_, store_);
    CommitRows(end, &kv_);
  }

  std::vector<Token> tokens_;
  Model* model_;
  KvCache cache_;
  KvStore store_;
  SequenceKv kv_;
  ForwardBatch batch_;
};

struct Plan {
  int lookahead = 4;
  int tree_width = 1;
  int max_nodes = 4;
};

// A drafter, on the target's keys and values or with its own.
class Proposing {
 public:
  Proposing(const std::string& own, bool on_target_kv)
      : draft_(CountedDraft(own)),
        drafter_(MakeModelDrafter({.max_sequences = 2,
                                   .max_context = 256,
                                   .draft = draft_,
                                   .on_target_kv = on_target_kv})),
        history_(draft_->config().vocabulary) {}

  Proposal Propose(std::span<const Token> tokens, TargetKv kv, const Plan& plan) {
    draft_->rows = 0;
    Proposal proposal;
    DraftContext context{.sequence = 1,
                         .tokens = tokens,
                         .sampling = &sampling_,
                         .history = &history_,
                         .target_kv = kv,
                         .lookahead = plan.lookahead,
                         .tree_width = plan.tree_width,
                         .max_nodes = plan.max_nodes,
                         .proposal = &proposal};
    drafter_->Propose({&context, 1});
    return proposal;
  }
  int rows() const { return draft_->rows; }

 private:
  std::shared_ptr<CountingModel> draft_;
  std::unique_ptr<Drafter> drafter_;
  SamplingParams sampling_{.temperature = 0.7F, .seed = 3};
  TokenHistory history_;
};

void ExpectSame(const Proposal& a, const Proposal& b) {
  EXPECT_TRUE(std::ranges::equal(a.tokens, b.tokens));
  EXPECT_TRUE(std::ranges::equal(a.parents, b.parents));
}

constexpr Plan kChain{};
constexpr Plan kTree{.lookahead = 5, .tree_width = 3, .max_nodes = TargetSequence::kNodes};

TEST(SelfKv, NoCommittedRowIsComputedButTheLast) {
  TargetSequence target(StoryPrompts()[0]);
  Proposing drafter("exit=3", /*on_target_kv=*/true);
  EXPECT_EQ(drafter.Propose(target.tokens(), target.kv(), kChain).size(), 4);
  EXPECT_EQ(drafter.rows(), 4);
  const Proposal next = drafter.Propose(target.tokens(), target.kv(), kChain);
  target.Append(next.tokens);
  EXPECT_EQ(drafter.Propose(target.tokens(), target.kv(), kChain).size(), 4);
  EXPECT_EQ(drafter.rows(), 4);
}

// The first layers' keys and values are what the draft would have computed itself.
TEST(SelfKv, AnExitProposesWhatItWouldWithItsOwn) {
  for (const Plan& plan : {kChain, kTree}) {
    TargetSequence target(StoryPrompts()[1]);
    Proposing lent("exit=3", true);
    Proposing own("exit=3", false);
    for (int round = 0; round < 4; ++round) {
      const Proposal proposal = own.Propose(target.tokens(), {}, plan);
      EXPECT_GT(proposal.size(), 2);
      ExpectSame(lent.Propose(target.tokens(), target.kv(), plan), proposal);
      EXPECT_LE(lent.rows(), 1 + plan.max_nodes * (plan.tree_width > 1 ? 2 : 1));
      if (round == 0) {
        EXPECT_GT(own.rows(), lent.rows());
      }
      target.Append(std::vector<Token>{proposal.tokens[0], proposal.tokens[0] / 2});
    }
  }
}

TEST(SelfKv, WhatTheTargetHasCommittedAndKeptStays) {
  for (const char* own : {"exit=2", "skip=a1,m2,a4", ""}) {
    TargetSequence target(StoryPrompts()[2]);
    const std::vector<float> logits = target.LogitsOfRoot();
    const std::vector<char> taps = target.Taps();
    Proposing drafter(own, true);
    EXPECT_GT(drafter.Propose(target.tokens(), target.kv(), kTree).size(), 4) << own;
    EXPECT_EQ(target.Taps(), taps) << own;
    EXPECT_EQ(target.LogitsOfRoot(), logits) << own;
  }
}

TEST(SelfKv, WithoutTheTargetsOrRoomInItNothingIsProposed) {
  TargetSequence target(StoryPrompts()[3]);
  Proposing drafter("exit=2", true);
  EXPECT_EQ(drafter.Propose(target.tokens(), {}, kChain).size(), 0);
  EXPECT_EQ(drafter.Propose(target.tokens(), target.kv(), {.lookahead = 4, .max_nodes = 63}).size(),
            0);
  EXPECT_EQ(drafter.rows(), 0);
  EXPECT_EQ(drafter.Propose(target.tokens(), target.kv(), kChain).size(), 4);
}

// What an engine decodes of prompts that begin alike, with such a draft or with another.
struct Decoded {
  std::vector<std::vector<Token>> tokens;
  std::int64_t accepted = 0;
  int preemptions = 0;
  int cached = 0;
};

std::vector<std::vector<Token>> LongPrompts() {
  std::vector<Token> common;
  for (const auto& prompt : StoryPrompts()) {
    common.insert(common.end(), prompt.begin(), prompt.end());
  }
  std::vector<std::vector<Token>> prompts;
  for (const auto& prompt : StoryPrompts()) {
    prompts.push_back(common);
    prompts.back().insert(prompts.back().end(), prompt.begin(), prompt.end());
  }
  return prompts;
}

Decoded DecodeBySelf(Mode mode, const EngineConfig& config, const DraftOptions& draft,
                     float temperature = 0.8F) {
  const auto engine = MakeEngine(mode, config, BundledTarget(), draft);
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
  Decoded decoded;
  const SamplingParams sampling{.temperature = temperature, .seed = 11};
  for (const auto& output : Generate(**engine, LongPrompts(), sampling, {.max_tokens = 20})) {
    decoded.tokens.push_back(output.tokens);
    decoded.accepted += output.stats.accepted;
    decoded.preemptions += output.stats.preemptions;
    decoded.cached += output.stats.cached_prompt_tokens;
  }
  return decoded;
}

DraftOptions SelfDraft(const std::string& own) {
  DraftOptions draft = BundledDraft();
  draft.source = SelfSource(own);
  return draft;
}

TEST(SelfKv, TheEngineEmitsTheTokensOfAr) {
  const SpeculationPlan chain{.lookahead = 4};
  const SpeculationPlan tree{.lookahead = 5, .tree_width = 3, .max_nodes = 16};
  const Decoded truth =
      DecodeBySelf(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, SelfDraft("exit=3"));
  for (const char* own : {"exit=3", "skip=a2,m3"}) {
    const DraftOptions draft = SelfDraft(own);
    const auto expect = [&](const EngineConfig& config) {
      const Decoded decoded = DecodeBySelf(Mode::kSd, config, draft);
      EXPECT_EQ(decoded.tokens, truth.tokens) << own;
      EXPECT_GT(decoded.accepted, 0) << own;
      return decoded;
    };
    EXPECT_GT(expect({.plan = chain, .max_batch = 1}).cached, 0);
    expect({.plan = tree, .max_batch = 4, .prefill_chunk = 16});
    const Decoded crowded = expect({.plan = tree,
                                    .max_batch = 5,
                                    .max_context = 160,
                                    .kv_tokens = 256,
                                    .prefix_cache = false});
    EXPECT_GT(crowded.preemptions, 0) << own;
    EngineConfig rejecting{.plan = chain, .max_batch = 2};
    rejecting.verification = Verification::kRejection;
    EXPECT_EQ(DecodeBySelf(Mode::kSd, rejecting, draft, /*temperature=*/0).tokens,
              DecodeBySelf(Mode::kAr, {.max_batch = 1}, draft, 0).tokens);
  }
}

// A window wider than any text gives the same draft keys and values of its own. Those of the whole
// model are others than a draft has that leaves sub-layers out before its last one.
TEST(SelfKv, TheEngineAcceptsOfAnExitWhatItWouldWithItsOwn) {
  const auto accepted = [](const DraftOptions& draft, int width) {
    return DecodeBySelf(Mode::kSd, {.plan = {.lookahead = 4, .tree_width = width}, .max_batch = 3},
                        draft)
        .accepted;
  };
  const auto with_own = [](DraftOptions draft) {
    draft.window = DraftWindow{.positions = 4096};
    return draft;
  };
  const DraftOptions exit = SelfDraft("exit=3");
  EXPECT_EQ(accepted(exit, 1), accepted(with_own(exit), 1));
  EXPECT_EQ(accepted(exit, 3), accepted(with_own(exit), 3));
  const DraftOptions skip = SelfDraft("skip=a1,m2");
  EXPECT_NE(accepted(skip, 1), accepted(with_own(skip), 1));
}

// As a first stage, with a helper; and beside texts, in whose tree it has a part.
TEST(SelfKv, MembersEmitTheTokensOfAr) {
  const Decoded truth =
      DecodeBySelf(Mode::kAr, {.max_batch = 1, .prefix_cache = false}, SelfDraft("exit=3"));
  for (const char* own : {"exit=3", "skip=a2,m3"}) {
    const DraftOptions draft = SelfDraft(own);
    const SpeculationPlan plan{.lookahead = 5, .tree_width = 2, .max_nodes = 16};
    const SpeculationPlan chain{.lookahead = 5};
    const Decoded sd = DecodeBySelf(Mode::kSd, {.plan = chain, .max_batch = 3}, draft);
    for (const Mode mode : {kStaged, kEnsemble}) {
      const EngineConfig tiny{.plan = plan,
                              .max_batch = 5,
                              .max_context = 160,
                              .kv_tokens = 256,
                              .prefix_cache = false};
      const Decoded crowded = DecodeBySelf(mode, tiny, draft);
      EXPECT_EQ(crowded.tokens, truth.tokens) << own << ModeName(mode);
      EXPECT_GT(crowded.preemptions, 0) << own << ModeName(mode);
      const Decoded decoded = DecodeBySelf(mode, {.plan = chain, .max_batch = 3}, draft);
      EXPECT_EQ(decoded.tokens, truth.tokens) << own << ModeName(mode);
      EXPECT_GT(decoded.accepted, 0) << own << ModeName(mode);
      EXPECT_GT(decoded.cached, 0) << own << ModeName(mode);
      if (mode == kStaged) {
        EXPECT_EQ(decoded.accepted, sd.accepted) << own;
      }
    }
  }
}

// A first stage, and what is in an ensemble, reads nothing of a text and drafts where it is shown
// the target's.
TEST(SelfKv, AMemberProposesWhatItWouldAlone) {
  for (const DrafterId id : {DrafterId::kStaged, DrafterId::kEnsemble}) {
    TargetSequence target(StoryPrompts()[1]);
    const auto draft = CountedDraft("skip=a2,m3");
    const auto whole = MakeDrafter(
        id, {.vocabulary = draft->config().vocabulary,
             .max_sequences = 2,
             .max_context = 256,
             .members = {{.id = DrafterId::kModel, .draft = draft, .on_target_kv = true},
                         {.id = DrafterId::kNgram}}});
    Proposing alone("skip=a2,m3", true);
    TokenHistory history(draft->config().vocabulary);
    const SamplingParams sampling{.temperature = 0.7F, .seed = 3};
    const auto propose = [&](TargetKv kv) {
      draft->rows = 0;
      Proposal proposal;
      DraftContext context{.sequence = 1,
                           .tokens = target.tokens(),
                           .sampling = &sampling,
                           .history = &history,
                           .target_kv = kv,
                           .lookahead = 6,
                           .max_nodes = 6,
                           .proposal = &proposal};
      whole->Propose({&context, 1});
      return proposal;
    };
    if (id == DrafterId::kStaged) {
      EXPECT_EQ(propose({}).size(), 0);
      EXPECT_EQ(draft->rows, 0);
    }
    for (int round = 0; round < 4; ++round) {
      const Proposal proposal = propose(target.kv());
      EXPECT_LE(draft->rows, 2 * 6);
      const Proposal expected = alone.Propose(target.tokens(), target.kv(), {6, 1, 6});
      if (id == DrafterId::kStaged) {
        ExpectSame(proposal, expected);
      } else if (round == 0) {  // Afterwards the clock says how much it is asked for.
        EXPECT_GT(draft->rows, 0);
        EXPECT_EQ(proposal.tokens[0], expected.tokens[0]);
      }
      target.Append(std::vector<Token>{expected.tokens[0], expected.tokens[1]});
    }
  }
}

TEST(SelfKv, ADraftByTextHasItsOwn) {
  DraftOptions draft = SelfDraft("exit=5");
  draft.by_text = true;
  const Decoded decoded =
      DecodeBySelf(Mode::kSd, {.plan = {.lookahead = 4}, .max_batch = 3}, draft);
  EXPECT_GT(decoded.accepted, 0);
}

}  // namespace
}  // namespace foretoken
