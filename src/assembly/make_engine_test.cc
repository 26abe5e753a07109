#include "assembly/make_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assembly/engine_testing.h"

namespace foretoken {
namespace {

TEST(MakeEngine, OffersWhatItWasAskedForAndTheFirstIsTheDefault) {
  const std::vector<Mode> modes = {Mode::kSssd, Mode::kSd};
  const auto engine = MakeEngine(modes, {.plan = {.lookahead = 7}, .max_batch = 1}, BundledTarget(),
                                 BundledDraft());
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
  const auto weights = [] { return BundledTarget()->draft_weights->weights.lock(); };
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
  DraftSetup draft = BundledDraft();
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
