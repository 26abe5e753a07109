#include <gtest/gtest.h>

#include <array>

#include "core/planner/learned_model.h"
#include "core/prediction/predict.h"

namespace foretoken {
namespace {

// A round that measures its mode.
void Observe(LearnedModel* learned, const PassObservation& pass) {
  learned->ObservePass(pass, learned->UsualRoundUs(pass), /*warmed_up=*/true);
}

// A pass of a trial that something else held up says little about the draft beside it.
TEST(LearnedModel, OneHiccupIsNoContention) {
  CostModel prior;
  prior.target = TimeTable::Line(1000, 20);
  prior.first_draft().apart = prior.first_draft().on_target = TimeTable::Line(100, 2);
  LearnedModel learned(prior);
  for (int i = 0; i < 20; ++i) Observe(&learned, {.pass_us = 1020, .mode = Mode::kAr});
  PassObservation beside{.pass_us = 1020, .mode = Mode::kSsd, .draft_busy = true};
  for (int i = 0; i < 3; ++i) Observe(&learned, beside);
  beside.pass_us = 3000;
  Observe(&learned, beside);
  EXPECT_LT(learned.Model({}).target_contention, 1.07);
}

TimeTable Passes(const std::array<int, 4>& rows, const std::array<double, 4>& us) {
  return *TimeTable::Make(rows, std::array{64}, us);
}

// The table was measured in a noisy moment: sixteen rows cost less beside four than it says.
TEST(LearnedModel, LearnsRowsBesideTheDraft) {
  CostModel prior;
  prior.target = Passes({1, 4, 8, 16}, {1000, 1200, 2000, 4000});
  prior.first_draft().apart = prior.first_draft().on_target = TimeTable::Line(100, 2);
  LearnedModel learned(prior);
  for (int i = 0; i < 20; ++i) Observe(&learned, {.pass_us = 1000, .mode = Mode::kAr});
  PassObservation pass{.tokens = 4, .mode = Mode::kSsd, .draft_busy = true};
  for (int i = 0; i < 400; ++i) {
    pass.rows = i % 2 == 0 ? 4 : 16;
    pass.pass_us = i % 2 == 0 ? 1.2 * 1200 : 1.0 * 4000;
    Observe(&learned, pass);
  }
  const CostModel model = learned.Model({});
  const auto beside = [&model](int n) {
    return model.target_beside_draft.us(n, 64) / model.target.us(n, 64);
  };
  EXPECT_NEAR(beside(4), 1.2, 0.01);
  EXPECT_NEAR(beside(16), 1.0, 0.01);
  EXPECT_NEAR(beside(8), 1.1, 0.01);  // Not seen: as the mean of all.
  EXPECT_NEAR(model.target.us(4, 64), 1200, 1);
}

// A neighbour's burst fell into rounds of four rows: that says nothing about four rows.
TEST(LearnedModel, LearnsNoPricesOfPassesThatOthersHeldUp) {
  CostModel prior;
  prior.target = Passes({1, 4, 8, 16}, {1000, 1200, 2000, 4000});
  LearnedModel learned(prior);
  const PassObservation plain{.pass_us = 1000, .mode = Mode::kAr};
  PassObservation drafts{.rows = 4, .pass_us = 1200, .tokens = 2, .mode = Mode::kNgram};
  for (int i = 0; i < 50; ++i) Observe(&learned, i % 2 == 0 ? plain : drafts);
  drafts.pass_us = 2400;
  drafts.disturbed = true;
  const double before = learned.records().Report()[Mode::kNgram].tokens_per_second;
  for (int i = 0; i < 500; ++i) Observe(&learned, drafts);
  EXPECT_NEAR(learned.Model({}).target.us(4, 64), 1200, 1);
  EXPECT_NEAR(learned.Model({}).target.us(1, 64), 1000, 1);
  EXPECT_EQ(learned.records().Report()[Mode::kNgram].tokens_per_second, before);
  drafts.disturbed = false;
  for (int i = 0; i < 500; ++i) Observe(&learned, drafts);
  EXPECT_GT(learned.Model({}).target.us(4, 64), 2000) << "what is not held up is slow by itself";
}

// A round's wait is one pass over the block's rows, whatever K is.
TEST(LearnedModel, LearnsPassesThatSaySeveralTokens) {
  CostModel prior;
  prior.target = TimeTable::Line(1000, 10);
  prior.first_draft().apart = prior.first_draft().on_target =
      Passes({1, 8, 16, 32}, {100, 120, 160, 240});
  prior.first_draft().pass = {.positions = 7, .block = 8, .from_root = true};
  LearnedModel learned(prior);
  for (int i = 0; i < 400; ++i) {
    Observe(&learned, {.sequences = 2,
                       .rows = 10,
                       .pass_us = 1100,
                       .wait_us = 200,
                       .tokens = 4,
                       .lookahead = 4,
                       .mode = Mode::kSd});
  }
  EXPECT_NEAR(learned.Model({}).first_draft().on_target.us(16, 64), 200, 1);
}

// A pass of plain decoding that takes what `model` says, predicted at another load.
PassObservation PlainPass(const CostModel& model, const Workload& load,
                          const Workload& predicted_at) {
  return {.sequences = load.batch,
          .rows = load.batch,
          .context = load.context,
          .pass_us = model.target.us(load.batch, load.context) +
                     model.FurtherSequencesUs(load.batch, load.context),
          .tokens = load.batch,
          .mode = Mode::kAr,
          .predicted = Predict(model, SpeculationPlan{}, predicted_at).tokens_per_second,
          .predicted_at = predicted_at};
}

// Between two replans the context grows, and with it what further sequences cost.
TEST(LearnedModel, AGrowingContextIsNoFaultOfTheMode) {
  CostModel prior;
  prior.target = TimeTable::Line(50, 10);
  prior.sequence_token_us = 0.1;
  LearnedModel learned(prior);
  constexpr Workload kPredictedAt{.batch = 4, .context = 20};
  for (int context = 20; context < 180; ++context) {
    const Workload load{.batch = 4, .context = static_cast<double>(context)};
    Observe(&learned, PlainPass(prior, load, kPredictedAt));
  }
  EXPECT_NEAR(learned.Model({}).correction[Mode::kAr], 1, 0.01);
}

// A machine that becomes faster while the draft works does so for plain decoding too.
TEST(LearnedModel, NothingIsFasterBesideTheDraft) {
  CostModel prior;
  prior.target = TimeTable::Line(1000, 20);
  prior.first_draft().apart = prior.first_draft().on_target = TimeTable::Line(100, 2);
  LearnedModel learned(prior);
  for (int i = 0; i < 100; ++i) {
    Observe(&learned, {.rows = 4,
                       .context = 100,
                       .pass_us = 0.85 * prior.target.us(4, 100),
                       .mode = Mode::kSsd,
                       .draft_busy = true});
  }
  const CostModel model = learned.Model({});
  EXPECT_NEAR(model.target.us(4, 100) / prior.target.us(4, 100), 0.85, 0.02);
  EXPECT_NEAR(model.target_beside_draft.us(4, 100) / prior.target.us(4, 100), 0.85, 0.02);
}

// Sequences come and go between two replans, and so does what passes of their rows cost.
TEST(LearnedModel, AShrinkingBatchIsNoFaultOfTheMode) {
  CostModel prior;
  prior.target = TimeTable::Line(500, 10);
  LearnedModel learned(prior);
  constexpr Workload kPredictedAt{.batch = 16, .context = 64};
  for (int i = 0; i < 200; ++i) {
    Observe(&learned, PlainPass(prior, {.batch = 16 - i / 20, .context = 64}, kPredictedAt));
  }
  EXPECT_NEAR(learned.Model({}).correction[Mode::kAr], 1, 0.01);
}

// Requests that ask for a mode teach what rounds take, but nothing about predictions.
TEST(LearnedModel, RoundsWithoutAPredictionCorrectNone) {
  CostModel prior;
  prior.target = TimeTable::Line(500, 10);
  LearnedModel learned(prior);
  for (int i = 0; i < 200; ++i) Observe(&learned, {.pass_us = 510, .mode = Mode::kAr});
  EXPECT_EQ(learned.Model({}).correction[Mode::kAr], 1);
}

TEST(LearnedModel, LearnsWhatTheDraftTakes) {
  CostModel prior;
  prior.target = TimeTable::Line(1000, 20);
  prior.first_draft().apart = TimeTable::Line(100, 10);
  prior.first_draft().on_target = prior.first_draft().apart;
  LearnedModel learned(prior);
  EXPECT_NEAR(learned.Model({}).first_draft().apart.us(8, 100), 180, 1e-9);
  for (int i = 0; i < 500; ++i) learned.ObserveDraft(8, 100, 360);
  EXPECT_NEAR(learned.Model({}).first_draft().apart.us(8, 100), 360, 10);
}

}  // namespace
}  // namespace foretoken
