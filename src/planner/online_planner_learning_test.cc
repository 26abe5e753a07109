#include <gtest/gtest.h>

#include <array>

#include "planner/online_planner.h"
#include "prediction/predict.h"

namespace foretoken {
namespace {

// A pass of a trial that something else held up says little about the draft beside it.
TEST(OnlinePlanner, OneHiccupIsNoContention) {
  CostModel prior;
  prior.target = TimeTable::Line(1000, 20);
  prior.draft = prior.draft_on_target = TimeTable::Line(100, 2);
  OnlinePlanner planner(prior, {});
  for (int i = 0; i < 20; ++i) planner.ObservePass({.pass_us = 1020, .mode = Mode::kAr});
  PassObservation beside{.pass_us = 1020, .mode = Mode::kSsd, .draft_busy = true};
  for (int i = 0; i < 3; ++i) planner.ObservePass(beside);
  beside.pass_us = 3000;
  planner.ObservePass(beside);
  EXPECT_LT(planner.Model({}).target_contention, 1.07);
}

TimeTable Passes(const std::array<int, 4>& rows, const std::array<double, 4>& us) {
  return *TimeTable::Make(rows, std::array{64}, us);
}

// The table was measured in a noisy moment: sixteen rows cost less beside four than it says.
TEST(OnlinePlanner, LearnsRowsBesideTheDraft) {
  CostModel prior;
  prior.target = Passes({1, 4, 8, 16}, {1000, 1200, 2000, 4000});
  prior.draft = prior.draft_on_target = TimeTable::Line(100, 2);
  OnlinePlanner planner(prior, {});
  for (int i = 0; i < 20; ++i) planner.ObservePass({.pass_us = 1000, .mode = Mode::kAr});
  PassObservation pass{.tokens = 4, .mode = Mode::kSsd, .draft_busy = true};
  for (int i = 0; i < 400; ++i) {
    pass.rows = i % 2 == 0 ? 4 : 16;
    pass.pass_us = i % 2 == 0 ? 1.2 * 1200 : 1.0 * 4000;
    planner.ObservePass(pass);
  }
  const CostModel model = planner.Model({});
  const auto beside = [&model](int n) {
    return model.target_beside_draft.us(n, 64) / model.target.us(n, 64);
  };
  EXPECT_NEAR(beside(4), 1.2, 0.01);
  EXPECT_NEAR(beside(16), 1.0, 0.01);
  EXPECT_NEAR(beside(8), 1.1, 0.01);  // Not seen: as the mean of all.
  EXPECT_NEAR(model.target.us(4, 64), 1200, 1);
}

// As long as the draft reads the contexts a speculator has nothing to propose.
TEST(OnlinePlanner, ReadingContextsIsNoMeasureOfAMode) {
  CostModel prior;
  prior.target = TimeTable::Line(1000, 20);
  prior.draft = prior.draft_on_target = TimeTable::Line(100, 2);
  OnlinePlanner planner(prior, {});
  PassObservation pass{.sequences = 4,
                       .rows = 4,
                       .pass_us = 1080,
                       .tokens = 4,
                       .mode = Mode::kSsd,
                       .draft_busy = true,
                       .predicted = 8000,
                       .predicted_at = {.batch = 4, .context = 0}};
  const auto ssd = [&planner] { return planner.Report().modes[std::size_t(Mode::kSsd)]; };
  for (int i = 0; i < 30; ++i) planner.ObservePass(pass);
  EXPECT_EQ(ssd().rounds, 0);
  pass.rows = 12;
  pass.tokens = 10;
  for (int i = 0; i < 10; ++i) planner.ObservePass(pass);
  EXPECT_EQ(ssd().rounds, 8);
  // But a draft that never comes through must be found out.
  OnlinePlanner other(prior, {});
  pass.rows = pass.tokens = 4;
  for (int i = 0; i < 500; ++i) other.ObservePass(pass);
  EXPECT_LT(other.Report().modes[std::size_t(Mode::kSsd)].correction, 0.6);
}

// Of plain decoding that takes what `model` says, predicted at another load.
PassObservation PlainPass(const CostModel& model, const Workload& load, const Workload& looked_at) {
  return {.sequences = load.batch,
          .rows = load.batch,
          .context = load.context,
          .pass_us = model.target.us(load.batch, load.context) +
                     model.FurtherSequencesUs(load.batch, load.context),
          .tokens = load.batch,
          .mode = Mode::kAr,
          .predicted = Predict(model, SpeculationPlan{}, looked_at).tokens_per_second,
          .predicted_at = looked_at};
}

// Between two looks the context grows, and with it what further sequences cost.
TEST(OnlinePlanner, AGrowingContextIsNoFaultOfTheMode) {
  CostModel prior;
  prior.target = TimeTable::Line(50, 10);
  prior.sequence_token_us = 0.1;
  OnlinePlanner planner(prior, {});
  constexpr Workload kLookedAt{.batch = 4, .context = 20};
  for (int context = 20; context < 180; ++context) {
    const Workload load{.batch = 4, .context = static_cast<double>(context)};
    planner.ObservePass(PlainPass(prior, load, kLookedAt));
  }
  EXPECT_NEAR(planner.Model({}).correction[static_cast<std::size_t>(Mode::kAr)], 1, 0.01);
}

// A machine that becomes faster while the draft works does so for plain decoding too.
TEST(OnlinePlanner, NothingIsFasterBesideTheDraft) {
  CostModel prior;
  prior.target = TimeTable::Line(1000, 20);
  prior.draft = prior.draft_on_target = TimeTable::Line(100, 2);
  OnlinePlanner planner(prior, {});
  for (int i = 0; i < 100; ++i) {
    planner.ObservePass({.rows = 4,
                         .context = 100,
                         .pass_us = 0.85 * prior.target.us(4, 100),
                         .mode = Mode::kSsd,
                         .draft_busy = true});
  }
  const CostModel model = planner.Model({});
  EXPECT_NEAR(model.target.us(4, 100) / prior.target.us(4, 100), 0.85, 0.02);
  EXPECT_NEAR(model.target_beside_draft.us(4, 100) / prior.target.us(4, 100), 0.85, 0.02);
}

// Sequences come and go between two looks, and so does what passes of their rows cost.
TEST(OnlinePlanner, AShrinkingBatchIsNoFaultOfTheMode) {
  CostModel prior;
  prior.target = TimeTable::Line(500, 10);
  OnlinePlanner planner(prior, {});
  constexpr Workload kLookedAt{.batch = 16, .context = 64};
  for (int i = 0; i < 200; ++i) {
    planner.ObservePass(PlainPass(prior, {.batch = 16 - i / 20, .context = 64}, kLookedAt));
  }
  EXPECT_NEAR(planner.Model({}).correction[static_cast<std::size_t>(Mode::kAr)], 1, 0.01);
}

// Requests that ask for a mode teach what rounds take, but nothing about predictions.
TEST(OnlinePlanner, RoundsWithoutAPredictionCorrectNone) {
  CostModel prior;
  prior.target = TimeTable::Line(500, 10);
  OnlinePlanner planner(prior, {});
  for (int i = 0; i < 200; ++i) planner.ObservePass({.pass_us = 510, .mode = Mode::kAr});
  EXPECT_EQ(planner.Model({}).correction[static_cast<std::size_t>(Mode::kAr)], 1);
}

// In the first rounds of SD the draft reads the contexts, which says nothing about later ones.
TEST(OnlinePlanner, ReadingContextsIsNoMeasureOfTheDraft) {
  CostModel prior;
  prior.target = TimeTable::Line(1000, 20);
  prior.draft = prior.draft_on_target = TimeTable::Line(100, 0);
  OnlinePlanner planner(prior, {});
  SequenceEstimate sequence;
  planner.FirstPlan({.mode = Mode::kAuto}, {}, &sequence);
  PassObservation pass{
      .rows = 5, .pass_us = 1100, .wait_us = 2000, .lookahead = 4, .mode = Mode::kSd};
  planner.ObservePass(pass);
  pass.wait_us = 400;
  for (int i = 0; i < 5; ++i) planner.ObservePass(pass);
  EXPECT_NEAR(planner.Model({}).draft_on_target.us(1, 256), 100, 1);
}

TEST(OnlinePlanner, LearnsWhatTheDraftTakes) {
  CostModel prior;
  prior.target = TimeTable::Line(1000, 20);
  prior.draft = TimeTable::Line(100, 10);
  prior.draft_on_target = prior.draft;
  OnlinePlanner planner(prior, {});
  EXPECT_NEAR(planner.Model({}).draft.us(8, 100), 180, 1e-9);
  for (int i = 0; i < 500; ++i) planner.ObserveDraft(8, 100, 360);
  EXPECT_NEAR(planner.Model({}).draft.us(8, 100), 360, 10);
}

}  // namespace
}  // namespace foretoken
