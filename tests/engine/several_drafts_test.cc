// Several draft models beside one target: sequences change from one to another in the middle of
// their texts, the same tokens come out, and each draft proposes what it would if it had drafted
// all the time, of the states that it reads itself.

#include "tests/engine/engine_testing.h"
#include "tests/engine/learned_draft_testing.h"

namespace foretoken::learned_testing {
namespace {

constexpr Mode kSd3{Schedule::kBefore, DrafterId::kModel3};

class SeveralDrafts : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  SeveralDrafts() {
    for (const std::string& name : GetParam()) {
      const std::vector<Kind> kinds = Kinds();
      kinds_.push_back(*std::ranges::find(kinds, name, &Kind::name));
      drafts_.push_back(
          std::make_unique<Made>(ShapeOf(kinds_.back()), 2 + drafts_.size(), &device_));
    }
  }

  std::unique_ptr<Engine> Open(int batch, bool with_drafts) {
    EngineConfig options{.plan = {.mode = Mode::kAr, .lookahead = 3}, .max_batch = batch};
    options.max_nodes = 12;
    options.prefill_chunk = 16;
    Proposers proposers;
    drafters_.clear();
    DrafterParts ensemble{.max_sequences = batch, .max_context = kContext};
    for (std::size_t i = 0; with_drafts && i < drafts_.size(); ++i) {
      const DrafterId id = kDraftModels[i];
      const std::shared_ptr<Model> draft(std::shared_ptr<Model>(), drafts_[i]->model.get());
      auto drafter = std::make_unique<CheckedDrafter>(
          DrafterParts{.max_sequences = batch, .max_context = kContext, .draft = draft});
      drafters_.push_back(drafter.get());
      proposers.before[id] = std::move(drafter);
      proposers.taps[id] = TapsOf(kinds_[i]);
      ensemble.members.push_back(
          {.id = id,
           .draft = draft,
           .taps = AddTaps(TapsOf(kinds_[i]), &proposers.taps[DrafterId::kEnsemble])});
    }
    if (with_drafts) {
      proposers.before[DrafterId::kEnsemble] = MakeDrafter(DrafterId::kEnsemble, ensemble);
    }
    auto engine =
        CreateEngine(options, target_.model.get(), &device_, nullptr, std::move(proposers));
    EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
    return std::move(engine).value();
  }

  static std::vector<SequenceId> SubmitAll(Engine& engine, float temperature,
                                           Collector* collector) {
    std::vector<SequenceId> ids;
    for (const auto& prompt : Prompts()) {
      ids.push_back(*engine.Submit({.prompt = prompt,
                                    .sampling = {.temperature = temperature, .seed = ids.size()},
                                    .stop = {.max_tokens = 60, .ignore_eos = true},
                                    .listener = collector}));
    }
    return ids;
  }

  Device device_{{TargetCore()}};
  Made target_{Shape(kTargetHidden, 4), 1, &device_};
  std::vector<Kind> kinds_;
  std::vector<std::unique_ptr<Made>> drafts_;
  std::vector<CheckedDrafter*> drafters_;  // The engine's.
};

TEST_P(SeveralDrafts, ChangingFromOneToAnotherChangesNoToken) {
  const std::vector<Mode> modes = {Mode::kSd, kSd2, Mode::kAr, kSd3, kEnsemble};
  for (const float temperature : {0.0F, 0.9F}) {
    Collector truth;
    const auto plain = Open(1, /*with_drafts=*/false);
    const auto alone = SubmitAll(*plain, temperature, &truth);
    plain->RunUntilIdle();

    Collector collector;
    const auto engine = Open(3, /*with_drafts=*/true);
    for (const Mode mode : modes) EXPECT_TRUE(engine->Offers(mode)) << ModeName(mode);
    const auto ids = SubmitAll(*engine, temperature, &collector);
    std::size_t changes = 0;
    for (int step = 1; engine->Step(); ++step) {
      if (step % 17 == 0) ForcePreemption(*engine);
      if (step % 3 != 0) continue;
      for (const SequenceId id : ids) {
        const PlanOptions plan{.mode = modes[changes++ % modes.size()], .lookahead = 3};
        ASSERT_TRUE(engine->ChangePlan(id, plan).ok());
      }
      ++changes;  // Each sequence comes to another mode.
    }
    std::int64_t accepted = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(collector.outputs[ids[i]].tokens, truth.outputs[alone[i]].tokens) << "text " << i;
      accepted += collector.outputs[ids[i]].stats.accepted;
    }
    EXPECT_GT(accepted, 0);
    for (const CheckedDrafter* drafter : drafters_) EXPECT_GT(drafter->compared(), 30);
    EXPECT_TRUE(engine->CheckIdle().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, SeveralDrafts,
    testing::Values(std::vector<std::string>{"eagle3", "mtp", "dflash"},
                    std::vector<std::string>{"pard", "eagle3_with_flags", "medusa"},
                    std::vector<std::string>{"mtp", "hydra", "extra_heads"}),
    [](const auto& test) { return test.param[0] + "_" + test.param[1] + "_" + test.param[2]; });

}  // namespace
}  // namespace foretoken::learned_testing
