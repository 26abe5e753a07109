#include "apps/lab/study/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "core/prediction/fallback_rule.h"
#include "core/prediction/fanout_solver.h"
#include "core/prediction/theory_testing.h"

namespace foretoken {
namespace {

using testing::HasSubstr;

constexpr double kTargetUs = 1000;  // One target pass: the papers' unit of time.
constexpr int kLookahead = 4;

PassTime Constant(double us) {
  return [us](int) { return us; };
}

HitCurves Hits(double partial, double full) {  // At fan-out 1 and above.
  return {HitCurve::FromPowerLaw({.c = 1 - partial}), HitCurve::FromPowerLaw({.c = 1 - full})};
}

// One sequence, a draft step of `draft_share` of a target pass, hit rates of 0.6 and 0.8.
SimulatorOptions Basic(Mode mode, double draft_share) {
  SimulatorOptions options;
  options.mode = mode;
  options.lookahead = kLookahead;
  options.primary = UniformFanout(1, kLookahead);
  options.after_fallback = UniformFanout(1, kLookahead);
  options.after_primary = {.acceptance = {0.7}, .curves = Hits(0.6, 0.8)};
  options.after_backup = {.acceptance = {0}, .curves = Hits(0.6, 0.6)};
  options.target_us = Constant(kTargetUs);
  options.draft_us = Constant(draft_share * kTargetUs);
  options.sd_draft_us = Constant(draft_share * kTargetUs);
  options.passes = 40000;
  return options;
}

// The paper's implementation: an uninterrupted draft, a batch that waits for a jit draft.
SimulatorOptions Papers(double draft_share) {
  SimulatorOptions options = Basic(Mode::kSsd, draft_share);
  options.whole_cache = true;
  options.jit_wait = JitWait::kBatch;
  return options;
}

// Over autoregressive decoding, of each sequence.
double Speedup(const SimulatorOptions& options) {
  return Simulate(options).tokens_per_second_per_sequence() * kTargetUs * 1e-6;
}

// P(hit) after a draft's proposal.
double HitAfterPrimary(const SimulatorOptions& options) {
  return theory::HitProbability(options.primary,
                                OutcomeNodes(options.after_primary.acceptance, kLookahead),
                                options.after_primary.curves);
}

// A mean over 40,000 rounds strays by less than half a percent.
constexpr double kTolerance = 0.005;
#define EXPECT_CLOSE(actual, expected) EXPECT_NEAR((actual) / (expected), 1, kTolerance)

TEST(Simulator, ArEmitsOneTokenAPass) {
  SimulatorOptions options = Basic(Mode::kAr, 0.1);
  options.batch = 3;
  options.passes = 100;
  const SimulatorResult result = Simulate(options);
  EXPECT_DOUBLE_EQ(result.tokens_per_second(), 3 / (kTargetUs * 1e-6));
  EXPECT_EQ(result.tokens, 300);
  EXPECT_DOUBLE_EQ(result.target_utilisation(), 1);
}

TEST(Simulator, SdIsTheTextbooks) {
  for (const double t : {0.0, 0.05, 0.3}) {
    const double expected =
        theory::SpeedupSd(theory::ExpectedTokens(0.7, kLookahead), kLookahead * t);
    EXPECT_CLOSE(Speedup(Basic(Mode::kSd, t)), expected);
  }
}

TEST(Simulator, AcceptanceMayDependOnThePosition) {
  SimulatorOptions options = Basic(Mode::kSd, 0);
  options.after_primary.acceptance = {1, 0.5, 0};
  EXPECT_CLOSE(Simulate(options).tokens_per_round(), 2.5);
}

// Theorem 7 with the primary speculator as its own backup, T_p below and above 1 (Corollary 8).
TEST(Simulator, SsdIsTheorem7s) {
  for (const double t : {0.0, 0.02, 0.1, 0.19, 0.3}) {
    const SimulatorOptions options = Papers(t);
    const double T_p = (kLookahead + 1) * t;  // The last node's branches start one step late.
    const double E = theory::ExpectedTokens(0.7, kLookahead);
    const double p_hit = HitAfterPrimary(options);
    // Uninterrupted, a slow draft delays misses too (Theorem 7 has T_p < 1).
    const double passes = std::max(1.0, T_p) + (1 - p_hit) * kLookahead * t;
    const SimulatorResult result = Simulate(options);
    const double speedup = result.tokens_per_second() * kTargetUs * 1e-6;
    EXPECT_CLOSE(result.hit_rate(), p_hit);
    EXPECT_CLOSE(speedup, E / passes);
    if (T_p >= 1) continue;
    const theory::SsdRound round = {
        .p_hit = p_hit, .E_hit = E, .E_miss = E, .T_p = T_p, .T_b = kLookahead * t};
    EXPECT_CLOSE(speedup, theory::SpeedupSsd(round));
    EXPECT_CLOSE(speedup, theory::SpeedupSd(E, round.T_b) * theory::GainOverSd(p_hit, round.T_b));
  }
}

TEST(Simulator, ACertainHitCostsTheLongerOfBoth) {
  for (const double t : {0.1, 0.5}) {
    SimulatorOptions options = Papers(t);
    options.after_primary.curves = options.after_backup.curves = Hits(1, 1);
    EXPECT_CLOSE(Speedup(options),
                 theory::ExpectedTokens(0.7, kLookahead) / std::max(1.0, (kLookahead + 1) * t));
  }
}

// A backup of random tokens: equation (1) and Theorem 7 with E_miss = 1, T_b = 0, at any batch.
TEST(Simulator, AFastBackupFollowsEquation1) {
  for (const int batch : {1, 8}) {
    SimulatorOptions options = Papers(0.1);
    options.fallback = Fallback::kRandom;
    options.batch = batch;
    options.passes = 160000 / batch;
    const double p_hit = theory::HitRate(HitAfterPrimary(options), 0.6);
    const double E_hit = theory::ExpectedTokens(0.7, kLookahead);
    EXPECT_CLOSE(Simulate(options).hit_rate(), p_hit);
    EXPECT_CLOSE(Speedup(options),
                 theory::SpeedupSsd({.p_hit = p_hit, .E_hit = E_hit, .E_miss = 1, .T_p = 0.5}));
  }
}

TEST(Simulator, ABatchThatWaitsIsCorollary16s) {
  for (const int batch : {1, 2, 4, 16}) {
    SimulatorOptions options = Papers(0.15);
    options.batch = batch;
    options.passes /= batch;
    const double E = theory::ExpectedTokens(0.7, kLookahead);
    EXPECT_CLOSE(
        Speedup(options),
        theory::SpeedupSsd(
            {.p_hit = HitAfterPrimary(options), .E_hit = E, .E_miss = E, .T_p = 0.75, .T_b = 0.6},
            batch));
  }
}

// Which fallback is better turns at Theorem 17's batch size.
TEST(Simulator, FallbacksCrossAtTheCriticalBatch) {
  SimulatorOptions options = Papers(0.199);  // T_p just below 1, T_b = 0.8.
  options.after_primary = {.acceptance = {0.9}, .curves = Hits(0.5, 0.5)};
  options.after_backup.curves = Hits(0.5, 0.5);
  options.passes = 20000;
  const auto slow_wins = [&](int batch) {
    options.batch = batch;
    options.fallback = Fallback::kJit;
    const double slow = Speedup(options);
    options.fallback = Fallback::kRandom;
    return slow > Speedup(options);
  };
  const double E = theory::ExpectedTokens(0.9, kLookahead);
  const double b = CriticalBatch(0.5, E, 1, 0.796);
  ASSERT_GT(b, 1.2);
  ASSERT_LT(b, 8);
  EXPECT_TRUE(slow_wins(1));
  EXPECT_FALSE(slow_wins(static_cast<int>(b) + 1));
}

// Between the steps of an anytime cache the target never waits: a slow draft shortens proposals.
TEST(Simulator, AnAnytimeCacheNeverStallsTheTarget) {
  double last_length = kLookahead + 1;
  for (const double t : {0.1, 0.3, 0.45, 0.9}) {
    SimulatorOptions options = Basic(Mode::kSsd, t);
    options.fallback = Fallback::kNone;
    const SimulatorResult result = Simulate(options);
    EXPECT_DOUBLE_EQ(result.target_utilisation(), 1);
    EXPECT_LT(result.proposal_length(), last_length);
    EXPECT_GE(result.tokens_per_round(), 1);
    last_length = result.proposal_length();
  }
  SimulatorOptions hopeless = Basic(Mode::kSsd, 1.5);
  hopeless.fallback = Fallback::kNone;
  EXPECT_DOUBLE_EQ(Speedup(hopeless), 1);
  EXPECT_GT(Simulate(hopeless).late, 0);
}

// Branches of the last node start a step late; three steps fit into a pass, so two of their tokens.
TEST(Simulator, ProposalsAreWhatIsThereInTime) {
  SimulatorOptions options = Basic(Mode::kSsd, 0.3);
  options.after_primary = {.acceptance = {1}, .curves = Hits(1, 1)};
  options.after_backup = {.acceptance = {0}, .curves = Hits(1, 1)};
  EXPECT_DOUBLE_EQ(Simulate(options).proposal_length(), 2);
  options.after_primary.acceptance = {0};
  EXPECT_DOUBLE_EQ(Simulate(options).proposal_length(), 3);
}

TEST(Simulator, WithoutDraftTimeSsdIsFreeSd) {
  SimulatorOptions ssd = Basic(Mode::kSsd, 0);
  ssd.jit_wait = JitWait::kBatch;
  ssd.batch = 2;
  ssd.passes = 2000;
  SimulatorOptions sd = ssd;
  sd.mode = Mode::kSd;
  // Either way each round verifies K tokens of the same quality, and the luck is the same.
  EXPECT_DOUBLE_EQ(Simulate(ssd).tokens_per_round(), Simulate(sd).tokens_per_round());
  EXPECT_DOUBLE_EQ(Speedup(ssd), Speedup(sd));
}

TEST(Simulator, WhoWaitsForAJustInTimeDraft) {
  SimulatorOptions options = Basic(Mode::kSsd, 0.2);
  options.batch = 8;
  options.passes = 4000;
  const auto run = [&](JitWait wait) {
    options.jit_wait = wait;
    return Simulate(options);
  };
  const SimulatorResult batch = run(JitWait::kBatch);
  const SimulatorResult sequence = run(JitWait::kSequence);
  const SimulatorResult nobody = run(JitWait::kNobody);
  EXPECT_EQ(batch.rounds, 8 * batch.passes);
  EXPECT_LT(batch.target_utilisation(), 0.8);
  EXPECT_LT(sequence.rounds, 8 * sequence.passes);
  EXPECT_GT(sequence.target_utilisation(), 0.99);
  EXPECT_GT(nobody.target_utilisation(), 0.99);
  EXPECT_LT(nobody.tokens_per_round(), sequence.tokens_per_round());
}

TEST(Simulator, CountsAddUp) {
  for (const bool whole : {false, true}) {
    for (const Fallback fallback : {Fallback::kJit, Fallback::kRandom, Fallback::kNone}) {
      for (const auto& [targets, batch, devices] :
           {std::tuple(1, 1, 1), std::tuple(1, 6, 2), std::tuple(3, 2, 2)}) {
        SimulatorOptions options = Basic(Mode::kSsd, 0.17);
        options.primary = UniformFanout(3, kLookahead);
        options.whole_cache = whole;
        options.jit_wait = JitWait::kSequence;
        options.fallback = fallback;
        options.targets = targets;
        options.batch = batch;
        options.draft_devices = devices;
        options.channel_us = 20;
        options.passes = 500;
        const SimulatorResult result = Simulate(options);
        EXPECT_EQ(result.tokens, result.accepted + result.rounds);
        EXPECT_EQ(result.passes, 500 * targets);
        EXPECT_LE(result.accepted, result.proposed);
        EXPECT_LE(result.proposed, kLookahead * result.rounds);
        EXPECT_LE(result.hits + result.late, result.rounds + result.sequences);
        EXPECT_LE(result.hits_at_end, result.rounds_at_end + result.sequences);
        EXPECT_LE(result.rounds, batch * result.passes);
        EXPECT_LE(result.target_utilisation(), 1 + 1e-9);
        EXPECT_LE(result.draft_utilisation(), 1 + 1e-9);
        // Every proposal token that was not random has been drafted.
        if (fallback == Fallback::kNone) {
          EXPECT_GE(result.draft_tokens, result.accepted);
        }
      }
    }
  }
}

TEST(Simulator, IsDeterministicBySeed) {
  SimulatorOptions options = Basic(Mode::kSsd, 0.17);
  options.targets = 2;
  options.batch = 3;
  options.passes = 200;
  const SimulatorResult first = Simulate(options);
  EXPECT_EQ(first.tokens, Simulate(options).tokens);
  EXPECT_EQ(first.elapsed_us, Simulate(options).elapsed_us);
  options.seed = 2;
  EXPECT_NE(first.tokens, Simulate(options).tokens);
}

// A draft pass that costs by rows: devices that share the branches make it shorter.
TEST(Simulator, MoreDraftDevicesMakeLongerProposals) {
  SimulatorOptions options = Basic(Mode::kSsd, 0);
  options.primary = UniformFanout(4, kLookahead);
  options.draft_us = [](int rows) { return 50 + 20.0 * rows; };
  options.passes = 4000;
  double last = 0;
  for (const int devices : {1, 2, 4}) {
    options.draft_devices = devices;
    const SimulatorResult result = Simulate(options);
    EXPECT_GT(result.proposal_length(), last + 0.1) << devices;
    last = result.proposal_length();
  }
}

// A draft pass that costs nothing by rows can be shared at will; one that does, cannot.
TEST(Simulator, TargetsShareADraftPool) {
  SimulatorOptions options = Basic(Mode::kSsd, 0.05);
  options.passes = 4000;
  options.fallback = Fallback::kNone;
  const double alone = Speedup(options);
  options.targets = 4;
  // A target's branches wait for the pass that is running when its round begins.
  EXPECT_NEAR(Speedup(options) / alone, 1, 0.03);
  options.draft_us = [](int rows) { return 50.0 * rows; };
  const double crowded = Speedup(options);
  options.targets = 1;
  EXPECT_LT(crowded, 0.9 * Speedup(options));
}

TEST(Simulator, ASlowChannelCostsDraftingTime) {
  SimulatorOptions options = Basic(Mode::kSsd, 0.15);
  options.passes = 4000;
  const double near = Speedup(options);
  options.channel_us = 200;
  EXPECT_LT(Speedup(options), 0.95 * near);
}

TEST(Simulator, RefusesNonsense) {
  const auto error_of = [](const auto& change) {
    SimulatorOptions options = Basic(Mode::kSsd, 0.1);
    change(&options);
    const Status status = CheckSimulatorOptions(options);
    return status.ok() ? std::string("no error") : status.error().message;
  };
  using Options = SimulatorOptions*;
  EXPECT_EQ(error_of([](Options) {}), "no error");
  EXPECT_THAT(error_of([](Options o) { o->mode = Mode::kNgram; }), HasSubstr("mode ngram"));
  EXPECT_THAT(error_of([](Options o) { o->fallback = Fallback::kAuto; }), HasSubstr("auto"));
  EXPECT_THAT(error_of([](Options o) { o->batch = 0; }), HasSubstr("batch 0"));
  EXPECT_THAT(error_of([](Options o) { o->lookahead = 0; }), HasSubstr("lookahead 0"));
  EXPECT_THAT(error_of([](Options o) { o->draft_devices = 0; }), HasSubstr("draft devices 0"));
  EXPECT_THAT(error_of([](Options o) { o->lookahead = 5; }), HasSubstr("fan-out of 5 nodes"));
  EXPECT_THAT(error_of([](Options o) { o->after_primary.acceptance = {1.5}; }), HasSubstr("1.5"));
  EXPECT_THAT(error_of([](Options o) { o->target_us = Constant(0); }), HasSubstr("0 us"));
  EXPECT_THAT(error_of([](Options o) { o->draft_us = Constant(-1); }), HasSubstr("-1 us"));
  EXPECT_THAT(error_of([](Options o) { o->channel_us = -1; }), HasSubstr("channel -1 us"));
}

}  // namespace
}  // namespace foretoken
