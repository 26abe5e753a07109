#include "door/assembly/make_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/engine/rules.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

using testing::ElementsAre;

const DraftOptions kDraft{.source = {.synthetic = "draft-12m"}, .cores = {3}};

std::vector<Mode> Offered(Mode mode, const DraftOptions& draft) {
  return OfferedModes(std::span(&mode, 1), std::span(&draft, 1), {}, Device({0, 1}));
}

TEST(OfferedModes, OnlyAutoOffersMoreThanItWasAskedFor) {
  EXPECT_THAT(Offered(Mode::kSsd, kDraft), ElementsAre(Mode::kSsd));
  EXPECT_THAT(Offered(Mode::kAuto, kDraft),
              ElementsAre(Mode::kAuto, Mode::kAr, Mode::kNgram, kEnsemble, Mode::kSd, Mode::kSsd));
}

TEST(OfferedModes, AutoNeedsADraftForSdAndAFreeCoreForSsd) {
  EXPECT_THAT(Offered(Mode::kAuto, {}),
              ElementsAre(Mode::kAuto, Mode::kAr, Mode::kNgram, kEnsemble));
  DraftOptions on_targets_core = kDraft;
  on_targets_core.cores = {1};
  EXPECT_THAT(Offered(Mode::kAuto, on_targets_core),
              ElementsAre(Mode::kAuto, Mode::kAr, Mode::kNgram, kEnsemble, Mode::kSd));
}

TEST(OfferedModes, EachFurtherDraftHasAModeOfItsOwn) {
  const std::array drafts = {kDraft, kDraft};
  EXPECT_THAT(
      OfferedModes(std::array{Mode::kAuto}, drafts, {}, Device({0, 1})),
      ElementsAre(Mode::kAuto, Mode::kAr, Mode::kNgram, kEnsemble, Mode::kSd, Mode::kSsd, kSd2));
  const auto engine = MakeEngine(kSd2, {.max_batch = 1}, BundledTarget(), BundledDraft());
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().message, "mode sd2 drafts with draft model 2, and there is 1");
}

TEST(OfferedModes, AutoStagesDraftsWhereStagesAreNamed) {
  const std::array stages = {DrafterId::kModel, DrafterId::kNgram};
  EXPECT_THAT(OfferedModes(std::array{Mode::kAuto}, std::array{kDraft}, stages, Device({0, 1})),
              testing::Contains(Mode{Schedule::kBefore, DrafterId::kStaged}));
}

TEST(OptionsFor, ThereIsAPlannerExactlyWherePlansMayBeOpen) {
  const ModelConfig target{.max_positions = 128};
  const auto planner_of = [&](std::vector<Mode> modes, EngineConfig options) {
    return OptionsFor(modes, options, target).planner;
  };
  EXPECT_FALSE(planner_of({Mode::kSsd}, {.planner = PlannerSettings{}}).has_value());
  EXPECT_TRUE(planner_of({Mode::kSsd}, {.plan = {.fallback = Fallback::kAuto}}).has_value());
  const auto planner = planner_of({Mode::kSd, Mode::kAuto}, {});
  ASSERT_TRUE(planner.has_value());
  EXPECT_THAT(std::vector<Mode>(planner->limits.modes.begin(), planner->limits.modes.end()),
              ElementsAre(Mode::kSd));
  EXPECT_EQ(std::ranges::find(planner->limits.fallbacks, Fallback::kRetrieval),
            planner->limits.fallbacks.end());
}

TEST(OptionsFor, AutoHasRoomForLongerPlansThanItsOwn) {
  const ModelConfig target{.max_positions = 128};
  const EngineConfig wanted{.plan = {.lookahead = 2}};
  const auto most = [&](Mode mode) {
    return SizesFor(OptionsFor(std::span(&mode, 1), wanted, target), target).lookahead;
  };
  EXPECT_EQ(most(Mode::kSd), 2);
  EXPECT_GT(most(Mode::kAuto), 2);
}

TEST(NeedsRowTimes, WhereRetrievalProposesByPrice) {
  const std::array ssd = {Mode::kSsd};
  const std::array sssd = {Mode::kSssd};
  const std::array ar = {Mode::kAr};
  EXPECT_TRUE(NeedsRowTimes(sssd, {.speculation_length = kAutoSpeculationLength}));
  EXPECT_FALSE(NeedsRowTimes(ar, {.speculation_length = kAutoSpeculationLength}));
  EXPECT_FALSE(NeedsRowTimes(sssd, {}));
  EXPECT_TRUE(NeedsRowTimes(ssd, {.fallback = Fallback::kRetrieval}));
  EXPECT_FALSE(NeedsRowTimes(ssd, {.speculation_length = 8, .fallback = Fallback::kRetrieval}));
}

TEST(MakeEngine, OffersWhatItWasAskedForAndTheFirstIsTheDefault) {
  const std::vector<Mode> modes = {Mode::kSssd, Mode::kSd};
  const auto engine = MakeEngine(modes, {.plan = {.lookahead = 7}, .max_batch = 1}, BundledTarget(),
                                 std::array{BundledDraft()});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  EXPECT_EQ(ConfigOf(**engine).plan.mode, Mode::kSssd);
  EXPECT_TRUE((*engine)->Offers(Mode::kSd));
  EXPECT_FALSE((*engine)->Offers(Mode::kSsd));
  EXPECT_FALSE((*engine)->Offers(Mode::kRest));
  EXPECT_TRUE(TimesOf(**engine).row_times.rows().empty());  // Nobody proposes by price.
}

TEST(MakeEngine, NeedNotMeasureWhatIsKnown) {
  const MeasuredTimes known{.row_times = TimeTable::Line(3, 1), .knee_rows = 9};
  const auto engine =
      MakeEngine(Mode::kSssd, {.plan = {.speculation_length = kAutoSpeculationLength}},
                 BundledTarget(), {}, {.known = known});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  EXPECT_EQ(TimesOf(**engine).knee_rows, 9);
}

TEST(MakeEngine, EnginesOfATargetShareTheirDraftsWeights) {
  const auto weights = [] {
    return (*BundledTarget()->draft_weights)[DrafterId::kModel].weights.lock();
  };
  const auto open = [](Mode mode) {
    return MakeEngine(mode, {.max_batch = 1}, BundledTarget(), BundledDraft()).value();
  };
  auto first = open(Mode::kSd);
  const ModelWeights* const packed = weights().get();
  ASSERT_NE(packed, nullptr);
  auto second = open(Mode::kSsd);
  EXPECT_EQ(weights().get(), packed);
  first.reset();
  EXPECT_EQ(weights().get(), packed);
  second.reset();
  EXPECT_EQ(weights(), nullptr);  // Nobody keeps what nobody uses.
}

TEST(MakeEngine, RefusesADraftThatDoesNotFit) {
  DraftOptions draft = BundledDraft();
  draft.source = {.synthetic = "draft-12m"};
  for (const Mode mode : {Mode::kSd, Mode::kSsd}) {
    const auto engine = MakeEngine(mode, {.max_batch = 1}, BundledTarget(), draft);
    ASSERT_FALSE(engine.ok()) << ModeName(mode);
    EXPECT_THAT(engine.error().message, testing::HasSubstr("must share one vocabulary"));
  }
  draft.process = true;  // Refused before there is one.
  const auto engine = MakeEngine(Mode::kSsd, {.max_batch = 1}, BundledTarget(), draft);
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(engine.error().message, testing::HasSubstr("must share one vocabulary"));
}

}  // namespace
}  // namespace foretoken
