// Drafters that are made of others, in whole engines.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

constexpr StopRules kComposedStop{.max_tokens = 96, .ignore_eos = true};

// The target itself, in fewer bits: a large draft, for which the bundled one may draft.
DraftOptions TargetAsDraft() {
  DraftOptions draft;
  draft.source = {.path = BundledModel("demo-target"), .weights = "q4_0"};
  return draft;
}

std::string Refusal(Mode mode, const EngineConfig& config,
                    const std::vector<DraftOptions>& drafts) {
  const auto engine = MakeEngine(std::span(&mode, 1), config, BundledTarget(), drafts);
  return engine.ok() ? "" : engine.error().message;
}

struct Outcomes {
  std::vector<std::vector<Token>> tokens;
  std::int64_t accepted = 0;
  std::int64_t rounds = 0;
};

Outcomes DecodeComposed(Mode mode, EngineConfig config, const std::vector<DraftOptions>& drafts,
                        float temperature) {
  auto engine = MakeEngine(std::span(&mode, 1), config, BundledTarget(), drafts);
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
  Outcomes outcomes;
  for (const auto& output :
       Generate(**engine, StoryPrompts(), {.temperature = temperature, .seed = 5}, kComposedStop)) {
    outcomes.tokens.push_back(output.tokens);
    outcomes.accepted += output.stats.accepted;
    outcomes.rounds += output.stats.rounds;
  }
  return outcomes;
}

TEST(StagedEngine, ThreeStagesAreAcceptedAsTheFirstIsAlone) {
  const std::vector<DraftOptions> drafts = {TargetAsDraft(), BundledDraft()};
  for (const float temperature : {0.0F, 0.8F}) {
    const EngineConfig config{.max_batch = 3};
    const Outcomes sd = DecodeComposed(Mode::kSd, config, drafts, temperature);
    const Outcomes staged = DecodeComposed(kStaged, config, drafts, temperature);
    EXPECT_EQ(staged.tokens, sd.tokens);
    EXPECT_EQ(staged.tokens, DecodeComposed(Mode::kAr, config, {}, temperature).tokens);
    EXPECT_EQ(staged.accepted, sd.accepted);
    EXPECT_EQ(staged.rounds, sd.rounds);
  }
}

// The same tokens are drawn from the same distributions, so the same come out.
TEST(StagedEngine, UnderRejectionTheOutputIsThatOfItsFirstStage) {
  const std::vector<DraftOptions> drafts = {TargetAsDraft(), BundledDraft()};
  const EngineConfig config{.max_batch = 3, .verification = Verification::kRejection};
  const Outcomes sd = DecodeComposed(Mode::kSd, config, drafts, 0.9F);
  const Outcomes staged = DecodeComposed(kStaged, config, drafts, 0.9F);
  EXPECT_EQ(staged.tokens, sd.tokens);
  EXPECT_EQ(staged.accepted, sd.accepted);
}

TEST(StagedEngine, RefusesWhatCannotBeStages) {
  const std::vector<DraftOptions> one = {BundledDraft()};
  const auto refusal = [&](std::vector<DrafterId> stages) {
    return Refusal(kStaged, {.max_batch = 1, .stages = std::move(stages)}, one);
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({DrafterId::kModel, DrafterId::kNgram}), "");
  EXPECT_EQ(Refusal(kStaged, {.max_batch = 1}, {}),
            "mode staged drafts with a draft model, and none is loaded");
  EXPECT_EQ(refusal({DrafterId::kModel, DrafterId::kModel2}),
            "stages names draft2, and the draft models that are loaded are 1");
  EXPECT_EQ(refusal({DrafterId::kModel}),
            "stages names draft alone: behind it there must be one that drafts for it");
  EXPECT_EQ(refusal({DrafterId::kNgram, DrafterId::kModel}),
            "stages names ngram before others, and only draft models can be drafted for");
  EXPECT_EQ(refusal({DrafterId::kModel, DrafterId::kEnsemble}),
            "stages names ensemble, which is made of other drafters itself");
  EXPECT_EQ(refusal({DrafterId::kModel, DrafterId::kModel}), "stages names draft twice");
  const auto random = refusal({DrafterId::kModel, DrafterId::kRandom});
  EXPECT_EQ(random, "stages names random, which proposes nothing that others could go on with");
}

// The clock decides how much a member is asked for, so this says no more.
TEST(EnsembleEngine, IsAcceptedMoreThanPromptLookup) {
  const std::vector<DraftOptions> drafts = {BundledDraft()};
  const Outcomes sd = DecodeComposed(Mode::kSd, {.max_batch = 2}, drafts, 0);
  const Outcomes ngram = DecodeComposed(Mode::kNgram, {.max_batch = 2}, drafts, 0);
  const EngineConfig config{.plan = {.speculation_length = 16}, .max_batch = 2};
  const Outcomes both = DecodeComposed(kEnsemble, config, drafts, 0);
  EXPECT_EQ(both.tokens, sd.tokens);
  EXPECT_GT(both.accepted * ngram.rounds, ngram.accepted * both.rounds);
}

TEST(EnsembleEngine, UnderRejectionTextsAreProposedByMembersThatFollowThem) {
  const std::vector<DraftOptions> drafts = {BundledDraft()};
  const EngineConfig config{.max_batch = 2, .verification = Verification::kRejection};
  EXPECT_EQ(DecodeComposed(kEnsemble, config, drafts, 0).tokens,
            DecodeComposed(Mode::kAr, config, {}, 0).tokens);
  EXPECT_GT(DecodeComposed(kEnsemble, config, drafts, 0.9F).accepted, 0);
  EXPECT_EQ(Refusal(kEnsemble,
                    {.max_batch = 1,
                     .ensemble = {DrafterId::kModel},
                     .verification = Verification::kRejection},
                    drafts),
            "ensemble names draft models alone, which under rejection verification cannot be part "
            "of one: add a drafter of texts, like ngram");
}

TEST(EnsembleEngine, RefusesWhatIsNotThere) {
  const auto refusal = [](std::vector<DrafterId> members) {
    return Refusal(kEnsemble, {.max_batch = 1, .ensemble = std::move(members)}, {});
  };
  EXPECT_EQ(refusal({}), "");  // Drafters of texts are always there.
  EXPECT_EQ(refusal({DrafterId::kModel, DrafterId::kNgram}),
            "ensemble names draft, and the draft models that are loaded are 0");
  EXPECT_EQ(refusal({DrafterId::kStaged}),
            "ensemble names staged, which is made of other drafters itself");
}

}  // namespace
}  // namespace foretoken
