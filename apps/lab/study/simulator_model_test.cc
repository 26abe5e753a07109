#include "apps/lab/study/simulator_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

using testing::HasSubstr;

SpeculationPlan Plan(Mode mode, int lookahead, int fanout, Fallback fallback) {
  return {.mode = mode,
          .lookahead = lookahead,
          .fallback = fallback,
          .primary = UniformFanout(fanout, lookahead),
          .after_fallback = UniformFanout(fanout, lookahead)};
}

double Simulated(const SimulatorPreset& preset, Mode mode, int fanout, int batch) {
  SimulatorOptions options = SimulatorFor(preset.model, Plan(mode, 6, fanout, Fallback::kJit),
                                          {.batch = batch, .context = 512});
  options.whole_cache = true;  // As the paper's implementation.
  options.jit_wait = JitWait::kBatch;
  if (batch > 1) options.fallback = Fallback::kRandom;
  if (batch > 1) options.after_backup = {{0}, preset.model.proposers[DrafterId::kRandom].curves};
  return Simulate(options).tokens_per_second();
}

TEST(SimulatorPreset, FitsThePublishedSpeeds) {
  const SimulatorPreset preset = *FindSimulatorPreset("paper-70b");
  EXPECT_NEAR(Simulated(preset, Mode::kAr, 3, 1), 54.7, 0.3);
  EXPECT_NEAR(Simulated(preset, Mode::kSd, 3, 1) / 161.8, 1, 0.03);
  EXPECT_NEAR(Simulated(preset, Mode::kSsd, 3, 1) / 255.8, 1, 0.05);
  EXPECT_NEAR(Simulated(preset, Mode::kSsd, 3, 16) / 1900, 1, 0.1);
  const SimulatorPreset qwen = *FindSimulatorPreset("paper-32b");
  EXPECT_NEAR(Simulated(qwen, Mode::kAr, 3, 1), 88.8, 0.5);
  EXPECT_NEAR(Simulated(qwen, Mode::kSd, 3, 1) / 136.8, 1, 0.03);
  EXPECT_NEAR(Simulated(qwen, Mode::kSsd, 3, 1) / 203.8, 1, 0.05);
}

TEST(SimulatorPreset, UnknownNamesListTheKnownOnes) {
  const auto preset = FindSimulatorPreset("paper-7b");
  ASSERT_FALSE(preset.ok());
  EXPECT_THAT(preset.error().message, HasSubstr("paper-70b, paper-32b"));
}

// Two views of one process: Predict's stationary distribution and the simulated mean.
TEST(SimulatorModel, AgreesWithPredict) {
  CostModel model;
  model.target = TimeTable::Line(9000, 20);
  model.first_draft().apart = TimeTable::Line(1100, 4);
  model.proposers[DrafterId::kModel].us = 6;  // A row's, beside the pass.
  model.first_draft().on_target = TimeTable::Line(1000, 10);
  model.proposers[DrafterId::kModel].acceptance.push_back(0.8);
  model.proposers[DrafterId::kModel].acceptance.push_back(0.7);
  model.proposers[DrafterId::kModel].curves = {HitCurve::FromPowerLaw({.c = 0.5, .r = 0.6}),
                                               HitCurve::FromPowerLaw({.c = 0.3, .r = 0.8})};
  for (const Mode mode : {Mode::kAr, Mode::kSd, Mode::kSsd}) {
    for (const Fallback fallback : {Fallback::kNone, Fallback::kJit}) {
      for (const int K : {2, 4, 6}) {
        const SpeculationPlan plan = Plan(mode, K, 2, fallback);
        for (const int batch : {1, 2}) {
          const Workload load = {.batch = batch};
          SimulatorOptions options = SimulatorFor(model, plan, load);
          options.passes = 10000;
          const double simulated = Simulate(options).tokens_per_second();
          const double predicted = Predict(model, plan, load).tokens_per_second;
          EXPECT_NEAR(predicted / simulated, 1, 0.03)
              << ModeName(mode) << " " << FallbackName(fallback) << " K=" << K << " b=" << batch;
        }
      }
    }
  }
}

// Both take no more rows in a draft pass than the engine's speculator does. Predict leaves out
// those that are not worth their time, so it may be somewhat faster.
TEST(SimulatorModel, AgreesWithPredictOnWideCaches) {
  CostModel model;
  model.target = TimeTable::Line(9000, 20);
  model.first_draft().apart = TimeTable::Line(500, 1);
  model.first_draft().on_target = model.first_draft().apart;
  model.proposers[DrafterId::kModel].acceptance.push_back(0.8);
  model.proposers[DrafterId::kModel].curves = {HitCurve::FromPowerLaw({.c = 0.5, .r = 0.6}),
                                               HitCurve::FromPowerLaw({.c = 0.3, .r = 0.8})};
  for (const int batch : {1, 2, 4, 8}) {
    const SpeculationPlan plan = Plan(Mode::kSsd, 4, 6, Fallback::kNone);
    const Workload load = {.batch = batch};
    SimulatorOptions options = SimulatorFor(model, plan, load);
    EXPECT_EQ(options.draft_rows_per_pass, kBranchRowsPerPass);
    options.passes = 4000;
    const double simulated = Simulate(options).tokens_per_second();
    const double predicted = Predict(model, plan, load).tokens_per_second;
    EXPECT_GT(predicted / simulated, 0.97) << batch;
    EXPECT_LT(predicted / simulated, 1.2) << batch;
  }
}

// Rows that a pass does not hold cost the time of another.
TEST(SimulatorModel, DraftRowsBeyondAPassTakeAnother) {
  CostModel model;
  model.target = TimeTable::Line(1000, 0);
  model.first_draft().apart = TimeTable::Line(300, 0);
  model.proposers[DrafterId::kModel].acceptance.push_back(0.9);
  model.proposers[DrafterId::kModel].curves = {HitCurve::FromPowerLaw({.c = 0.2, .r = 1}),
                                               HitCurve::FromPowerLaw({.c = 0.2, .r = 1})};
  SimulatorOptions options =
      SimulatorFor(model, Plan(Mode::kSsd, 2, 12, Fallback::kNone), {.batch = 1});
  const double limited = Simulate(options).tokens_per_second();
  options.draft_rows_per_pass = 0;
  EXPECT_GT(Simulate(options).tokens_per_second(), 1.1 * limited);
}

}  // namespace
}  // namespace foretoken
