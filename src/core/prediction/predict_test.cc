#include "core/prediction/predict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "core/prediction/anytime_cache.h"
#include "core/prediction/fanout_solver.h"
#include "core/prediction/theory_testing.h"

namespace foretoken {
namespace {

constexpr double kTargetUs = 10'000;

// Rows are free; a draft pass takes `draft_us` on either device.
CostModel FreeRows(double draft_us, double acceptance) {
  CostModel model;
  model.target = TimeTable::Line(kTargetUs, 0);
  model.first_draft().apart = TimeTable::Line(draft_us, 0);
  model.first_draft().on_target = TimeTable::Line(draft_us, 0);
  model.proposers[DrafterId::kModel].acceptance.push_back(acceptance);
  model.proposers[DrafterId::kModel].curves = {
      .partial = HitCurve::FromPowerLaw({.c = 0.6, .r = 0.5}),
      .full = HitCurve::FromPowerLaw({.c = 0.3, .r = 0.8})};
  return model;
}

SpeculationPlan Ssd(int lookahead, int fanout, Fallback fallback) {
  return {.mode = Mode::kSsd,
          .lookahead = lookahead,
          .fallback = fallback,
          .primary = UniformFanout(fanout, lookahead),
          .after_fallback = UniformFanout(fanout, lookahead)};
}

SpeculationPlan Sd(int lookahead) { return {.mode = Mode::kSd, .lookahead = lookahead}; }

TEST(Predict, ArTakesOnePassAToken) {
  CostModel model = FreeRows(100, 0.8);
  EXPECT_NEAR(Predict(model, {}, {}).tokens_per_second, 100, 1e-9);
  model.target = TimeTable::Line(8000, 2000);
  model.host_us = 100;
  model.host_row_us = 10;
  model.sequence_token_us = 0.5;
  const Prediction batch = Predict(model, {}, {.batch = 4, .context = 100});
  EXPECT_NEAR(batch.round_us, 8000 + 4 * 2000 + 100 + 40 + 150, 1e-9);
  EXPECT_NEAR(batch.tokens_per_second, 4e6 / batch.round_us, 1e-9);
}

TEST(Predict, SdIsTheTextbooks) {
  for (const double draft_us : {0.0, 500.0, 3000.0}) {
    const CostModel model = FreeRows(draft_us, 0.8);
    for (const int K : {1, 5, 12}) {
      const double speedup =
          theory::SpeedupSd(theory::ExpectedTokens(0.8, K), K * draft_us / kTargetUs);
      EXPECT_NEAR(Predict(model, Sd(K), {}).tokens_per_second, 100 * speedup, 1e-6);
    }
  }
}

// Whose pass takes 1000 us and 10 a row.
CostModel SaysSeveral(const DraftPassShape& shape) {
  CostModel model = FreeRows(0, 0.75);
  model.first_draft().apart = model.first_draft().on_target = TimeTable::Line(1000, 10);
  model.draft_rows_per_pass = 0;
  model.first_draft().pass = shape;
  return model;
}

TEST(Predict, SdWaitsForOnePassThatSaysSeveralTokens) {
  const auto accepted = [](int K) { return theory::ExpectedTokens(0.75, K) - 1; };
  const CostModel rows = SaysSeveral({.positions = 6});
  EXPECT_NEAR(Predict(rows, Sd(4), {}).wait_us, 1000 + 10 * (4 + accepted(4)), 1e-9);
  EXPECT_NEAR(Predict(rows, Sd(4), {}).tokens_per_round, 1 + accepted(4), 1e-9);
  // It says no more than it can.
  EXPECT_NEAR(Predict(rows, Sd(9), {}).wait_us, 1000 + 10 * (6 + accepted(6)), 1e-9);
  EXPECT_NEAR(Predict(rows, Sd(9), {}).tokens_per_round, 1 + accepted(6), 1e-9);
  // A block always has all of its rows.
  const CostModel block = SaysSeveral({.positions = 6, .block = 7, .from_root = true});
  EXPECT_NEAR(Predict(block, Sd(2), {.batch = 3}).wait_us, 1000 + 10 * 21, 1e-9);
}

TEST(Predict, SsdHasWholeBranchesOfAPassThatSaysSeveralTokens) {
  const int K = 5;
  const SpeculationPlan plan = Ssd(K, 3, Fallback::kJit);
  // Two passes and 1.2 ms of rows: well before the target.
  const CostModel rows = SaysSeveral({.positions = 8});
  const Prediction prediction = Predict(rows, plan, {});
  const double p_hit = theory::HitProbability(
      plan.primary, OutcomeNodes(rows.draft_model().acceptance, K), rows.draft_model().curves);
  EXPECT_NEAR(prediction.hit_rate, p_hit, 1e-9);
  EXPECT_NEAR(prediction.tokens_per_round, theory::ExpectedTokens(0.75, K), 1e-9);
  EXPECT_NEAR(prediction.wait_us, (1 - p_hit) * (1000 + 10 * K), 1e-6);
  // Behind an outcome at depth d a block of five positions says 4 - d.
  CostModel block = SaysSeveral({.positions = 5, .block = 6, .from_root = true});
  block.proposers[DrafterId::kModel].acceptance = {1.0};  // All outcomes are at the end.
  EXPECT_NEAR(Predict(block, Ssd(4, 3, Fallback::kNone), {}).hit_primary, 0, 1e-9);
  const Prediction shallow = Predict(block, Ssd(2, 3, Fallback::kNone), {});
  EXPECT_NEAR(shallow.hit_primary, block.draft_model().curves.full.hit(3), 1e-9);
}

TEST(Predict, PassesWithAndWithoutProposalsAreWeighed) {
  CostModel model = FreeRows(100, 0.8);
  constexpr std::array kRows = {1, 4, 5, 10};
  constexpr std::array kContexts = {100};
  constexpr std::array kUs = {1000.0, 1000.0, 3000.0, 3000.0};  // A step, as kernels' tiles make.
  model.target = *TimeTable::Make(kRows, kContexts, kUs);
  model.proposers[DrafterId::kNgram].acceptance.push_back(0.5);
  model.proposers[DrafterId::kNgram].coverage = 0.25;
  const SpeculationPlan plan{.mode = Mode::kNgram, .lookahead = 4};
  EXPECT_NEAR(Predict(model, plan, {}).round_us, 0.75 * 1000 + 0.25 * 3000, 1e-9);
  // Two sequences: 2, 6 or 10 rows.
  const Prediction both = Predict(model, plan, {.batch = 2});
  EXPECT_NEAR(both.round_us, 0.5625 * 1000 + 0.4375 * 3000, 1e-9);
  EXPECT_NEAR(both.target_rows, 2, 1e-9);
}

TEST(Predict, FastDraftGivesTheorem7) {
  // The draft is done well before the target, so every branch is K long.
  const int K = 5;
  const double draft_us = 900;
  const CostModel model = FreeRows(draft_us, 0.75);
  const SpeculationPlan plan = Ssd(K, 3, Fallback::kJit);
  const double p_hit = theory::HitProbability(
      plan.primary, OutcomeNodes(model.proposers[DrafterId::kModel].acceptance, K),
      model.proposers[DrafterId::kModel].curves);
  const double E = theory::ExpectedTokens(0.75, K);
  const double T = K * draft_us / kTargetUs;
  const Prediction prediction = Predict(model, plan, {});
  EXPECT_NEAR(prediction.hit_rate, p_hit, 1e-9);
  EXPECT_NEAR(prediction.hit_primary, p_hit, 1e-9);
  EXPECT_NEAR(prediction.hit_fallback, p_hit, 1e-9);
  EXPECT_NEAR(prediction.tokens_per_second, 100 * theory::SpeedupSsd({p_hit, E, E, T, T}), 0.01);
  EXPECT_NEAR(prediction.tokens_per_second / Predict(model, Sd(K), {}).tokens_per_second,
              theory::GainOverSd(p_hit, T), 1e-4);
}

TEST(Predict, HitRateIsEquation1) {
  // After a miss nothing is proposed: its one outcome node has another hit rate.
  const int K = 4;
  const CostModel model = FreeRows(100, 0.7);
  const Prediction prediction = Predict(model, Ssd(K, 2, Fallback::kNone), {});
  EXPECT_NEAR(prediction.hit_fallback, model.proposers[DrafterId::kModel].curves.full.hit(2), 1e-9);
  EXPECT_NEAR(prediction.hit_rate, theory::HitRate(prediction.hit_primary, prediction.hit_fallback),
              1e-6);
  EXPECT_EQ(prediction.wait_us, 0);
}

// A sequence that decodes with SSD where rows are free: all branches advance in every pass, the
// ones at an unranked node from the second on.
double SimulateSlowDraft(const CostModel& model, int K, int fanout, double draft_us) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> uniform;
  const double a = model.proposers[DrafterId::kModel].acceptance[0];
  const int passes = static_cast<int>(kTargetUs / draft_us);
  const int rounds = 200'000;
  double tokens = 0;
  int length = K;
  for (int round = 0; round < rounds; ++round) {
    int k = 0;
    while (k < length && uniform(random) < a) ++k;
    tokens += k + 1;
    const bool full = k == length;
    const HitCurve& curve = full ? model.proposers[DrafterId::kModel].curves.full
                                 : model.proposers[DrafterId::kModel].curves.partial;
    const bool hit = uniform(random) < curve.hit(fanout);
    length = hit ? std::min(K, passes - (full ? 1 : 0)) : 0;
  }
  return tokens / rounds;
}

TEST(Predict, SlowDraftShortensProposalsAndStallsNobody) {
  const int K = 6;
  for (const double draft_us : {1500.0, 2800.0, 4000.0}) {
    const CostModel model = FreeRows(draft_us, 0.8);
    const Prediction prediction = Predict(model, Ssd(K, 3, Fallback::kNone), {});
    EXPECT_NEAR(prediction.tokens_per_round / SimulateSlowDraft(model, K, 3, draft_us), 1, 0.01)
        << draft_us;
    EXPECT_NEAR(prediction.round_us, kTargetUs, 1e-6);
  }
  // So slow that nothing is ever ready: plain decoding.
  const Prediction hopeless = Predict(FreeRows(20'000, 0.8), Ssd(K, 3, Fallback::kNone), {});
  EXPECT_NEAR(hopeless.tokens_per_second, 100, 1e-6);
  EXPECT_EQ(hopeless.hit_rate, 0);
}

TEST(Predict, JustInTimeDraftsWaitOnlyForABatchOfMisses) {
  const CostModel model = FreeRows(800, 0.8);
  double last_wait = 1e9;
  for (const int batch : {1, 2, 4, 16}) {
    const Workload load{.batch = batch};
    const Prediction jit = Predict(model, Ssd(5, 2, Fallback::kJit), load);
    EXPECT_LT(jit.wait_us, last_wait) << batch;
    last_wait = jit.wait_us;
    EXPECT_GE(jit.tokens_per_round,
              Predict(model, Ssd(5, 2, Fallback::kNone), load).tokens_per_round);
  }
  EXPECT_LT(last_wait, 1);
}

TEST(Predict, FallbacksOfTheirOwnQuality) {
  CostModel model = FreeRows(800, 0.8);
  model.proposers[DrafterId::kNgram].acceptance.push_back(0.4);
  model.proposers[DrafterId::kNgram].coverage = 0.5;
  model.proposers[DrafterId::kNgram].us = 3;
  model.proposers[DrafterId::kNgram].curves = model.proposers[DrafterId::kModel].curves;
  model.proposers[DrafterId::kRandom].acceptance.push_back(0);
  const auto rate = [&model](Fallback fallback) {
    return Predict(model, Ssd(5, 2, fallback), {}).tokens_per_round;
  };
  EXPECT_GT(rate(Fallback::kJit), rate(Fallback::kNgram));
  EXPECT_GT(rate(Fallback::kNgram), rate(Fallback::kNone));
  // Random tokens are never right: they only make the bonus token harder to foresee.
  EXPECT_LT(rate(Fallback::kRandom), rate(Fallback::kNone));
}

TEST(Predict, BranchRowsCostArithmetic) {
  // One row takes 1 ms, each further one half of that: many branches leave time for few tokens.
  CostModel model = FreeRows(0, 0.8);
  const SpeculationPlan wide = Ssd(6, 8, Fallback::kNone);
  const double free_tokens = Predict(model, wide, {}).tokens_per_round;
  model.first_draft().apart = TimeTable::Line(500, 500);
  const double costly_tokens = Predict(model, wide, {}).tokens_per_round;
  EXPECT_LT(costly_tokens, free_tokens - 0.3);
  // The speculator takes the branches that are worth their rows, so a larger budget does not hurt
  // much: it chooses among more.
  EXPECT_GT(costly_tokens, Predict(model, Ssd(6, 1, Fallback::kNone), {}).tokens_per_round - 0.2);
}

TEST(Predict, PromptLookupAndRetrieval) {
  CostModel model = FreeRows(800, 0.8);
  EXPECT_FALSE(CanPredict(model, {.mode = Mode::kNgram}));
  model.proposers[DrafterId::kNgram].acceptance.push_back(0.5);
  model.proposers[DrafterId::kNgram].coverage = 0.6;
  model.proposers[DrafterId::kNgram].us = 10;
  const Prediction prediction = Predict(model, {.mode = Mode::kNgram, .lookahead = 4}, {});
  EXPECT_NEAR(prediction.tokens_per_round, 1 + 0.6 * (theory::ExpectedTokens(0.5, 4) - 1), 1e-9);
  EXPECT_NEAR(prediction.target_rows, 1 + 0.6 * 4, 1e-9);
  EXPECT_NEAR(prediction.round_us, kTargetUs + 10, 1e-9);
  model.proposers[DrafterId::kRetrieval] = model.proposers[DrafterId::kNgram];
  model.proposers[DrafterId::kRetrieval].mean_rows = 20;
  EXPECT_NEAR(Predict(model, {.mode = Mode::kSssd, .lookahead = 4}, {}).target_rows, 13, 1e-9);
}

TEST(Predict, KnowsWhatItCannot) {
  CostModel model = FreeRows(800, 0.8);
  EXPECT_TRUE(CanPredict(model, Ssd(4, 3, Fallback::kJit)));
  EXPECT_FALSE(CanPredict(model, Ssd(4, 3, Fallback::kAuto)));
  EXPECT_FALSE(CanPredict(model, Ssd(4, 3, Fallback::kNgram)));  // Not measured.
  EXPECT_FALSE(CanPredict(model, {.mode = Mode::kAuto}));
  EXPECT_FALSE(CanPredict(model, {.mode = Mode::kTrie}));
  EXPECT_FALSE(CanPredict(model, Sd(0)));
  SpeculationPlan plan = Ssd(4, 3, Fallback::kNone);
  plan.tree_width = 2;
  EXPECT_FALSE(CanPredict(model, plan));
  plan = Ssd(4, 3, Fallback::kNone);
  plan.lookahead = 5;  // A fan-out is missing.
  EXPECT_FALSE(CanPredict(model, plan));
  EXPECT_FALSE(CanPredict({}, {}));
}

TEST(ForecastCache, IsADistributionOverChains) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform;
  for (int trial = 0; trial < 200; ++trial) {
    CostModel model = FreeRows(0, uniform(random));
    model.first_draft().apart = TimeTable::Line(1000 * uniform(random), 300 * uniform(random));
    const int K = 1 + static_cast<int>(random() % 12);
    const NodeDistribution nodes = OutcomeNodes(model.proposers[DrafterId::kModel].acceptance, K);
    const FanoutShape shape =
        SolveFanout(nodes, model.proposers[DrafterId::kModel].curves, 3 * (K + 1));
    constexpr std::array kShapes = {DraftPassShape{}, DraftPassShape{.positions = 5},
                                    DraftPassShape{.positions = 7, .block = 8, .from_root = true}};
    model.first_draft().pass = kShapes[trial % kShapes.size()];
    const CacheRace race{.model = &model,
                         .batch = 1 + static_cast<int>(random() % 40),
                         .context = 100,
                         .us = kTargetUs * uniform(random),
                         .lookahead = K};
    const CacheForecast forecast =
        ForecastCache(race, shape, nodes, model.proposers[DrafterId::kModel].curves);
    double sum = 0;
    for (const double p : forecast.chain) {
      EXPECT_GE(p, -1e-12);
      sum += p;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_LE(
        forecast.hit(),
        theory::HitProbability(shape, nodes, model.proposers[DrafterId::kModel].curves) + 1e-9);
    CacheRace longer = race;
    longer.us *= 2;
    EXPECT_GE(ForecastCache(longer, shape, nodes, model.proposers[DrafterId::kModel].curves).hit(),
              forecast.hit() - 1e-9);
  }
}

}  // namespace
}  // namespace foretoken
