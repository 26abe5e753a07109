#include "apps/foretoken/common/bench_stats.h"
#include "base/numbers/integers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "apps/lab/bench/bench_report.h"
#include "json/json.h"

namespace foretoken {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  EXPECT_DOUBLE_EQ(Quantile({}, 0.5), 0);
  EXPECT_DOUBLE_EQ(Quantile({7}, 0.99), 7);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 2}, 1), 4);
  EXPECT_DOUBLE_EQ(Quantile({0, 10}, 0.25), 2.5);
}

TEST(BootstrapRatio, IsTheGeometricMeanWithAnInterval) {
  const Interval same = BootstrapRatio(std::vector<double>{2, 2, 2});
  EXPECT_DOUBLE_EQ(same.value, 2);
  EXPECT_DOUBLE_EQ(same.low, 2);
  EXPECT_DOUBLE_EQ(same.high, 2);

  const Interval balanced = BootstrapRatio(std::vector<double>{0.5, 2});
  EXPECT_DOUBLE_EQ(balanced.value, 1);
  EXPECT_DOUBLE_EQ(balanced.low, 0.5);
  EXPECT_DOUBLE_EQ(balanced.high, 2);
  EXPECT_DOUBLE_EQ(BootstrapRatio({}).value, 0);
}

// For many pairs the interval must come near the normal one: mean +- 1.96 deviations / sqrt(n).
TEST(BootstrapRatio, AgreesWithTheNormalInterval) {
  std::vector<double> ratios;
  for (int i = 0; i < 400; ++i) ratios.push_back(std::exp(i % 2 == 0 ? 0.3 : 0.1));
  const Interval interval = BootstrapRatio(ratios);
  EXPECT_NEAR(std::log(interval.value), 0.2, 1e-9);
  EXPECT_NEAR(std::log(interval.low), 0.2 - 1.96 * 0.1 / 20, 0.0015);
  EXPECT_NEAR(std::log(interval.high), 0.2 + 1.96 * 0.1 / 20, 0.0015);
}

Generation TwoRounds() {
  Generation generation;
  generation.bursts = {{1000, 1}, {1600, 3}, {1700, 1}};
  return generation;
}

TEST(Gaps, OfARoundAreSpreadOverItsTokens) {
  std::vector<double> of_tokens;
  std::vector<double> of_bursts;
  AppendGaps(TwoRounds(), &of_tokens, &of_bursts);
  EXPECT_THAT(of_tokens, ElementsAre(200, 200, 200, 100));
  EXPECT_THAT(of_bursts, ElementsAre(600, 100));
}

TEST(LogHistogram, CountsEveryPositiveValueBelowItsEdge) {
  const std::vector<double> values = {1, 1, 2, 100, 0};
  const auto histogram = LogHistogram(values, /*unit=*/1);
  EXPECT_THAT(histogram, ElementsAre(Pair(DoubleNear(1, 0.1), 2), Pair(DoubleNear(2, 0.2), 1),
                                     Pair(DoubleNear(100, 10), 1)));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_GE(histogram[i].first, values[i + 1] * 0.999);
}

RequestStats SomeStats() {
  RequestStats stats;
  stats.prompt_tokens = 10;
  stats.output_tokens = 5;
  stats.submitted_ns = 1'000'000;
  stats.first_token_ns = 3'000'000;
  stats.finished_ns = 5'000'000;
  stats.rounds = 2;
  stats.reached_at[0] = 2;
  stats.accepted_at[0] = 1;
  stats.reached_at[1] = 1;
  stats.lookups_full = 4;
  stats.hits_full = 3;
  return stats;
}

TEST(Stats, AddUp) {
  RequestStats total;
  AddStats(SomeStats(), &total);
  AddStats(SomeStats(), &total);
  EXPECT_EQ(total.output_tokens, 10);
  EXPECT_EQ(total.finished_ns - total.first_token_ns, 4'000'000);
  EXPECT_DOUBLE_EQ(total.acceptance_length(), 2.5);
  EXPECT_THAT(AcceptancePerPosition(total), ElementsAre(0.5, 0.0));
  EXPECT_DOUBLE_EQ(HitRate(total), 0.75);
}

Generation Output(std::vector<Token> tokens, std::int64_t decode_ns) {
  Generation generation;
  generation.tokens = std::move(tokens);
  generation.stats = SomeStats();
  generation.stats.output_tokens = Int(generation.tokens.size());
  generation.stats.finished_ns = generation.stats.first_token_ns + decode_ns;
  generation.bursts = {{generation.stats.first_token_ns, 1},
                       {generation.stats.finished_ns, Int(generation.tokens.size()) - 1}};
  return generation;
}

SetResult TwoModes() {
  SetResult set{"set", false, 0, {}};
  set.modes.push_back({.label = "ar", .mode = Mode::kAr});
  set.modes.push_back({.label = "ssd", .mode = Mode::kSsd});
  set.modes[0].Add({Output({1, 2, 3}, 2'000'000)});
  set.modes[0].Add({Output({4, 5, 6}, 4'000'000)});
  set.modes[1].Add({Output({1, 2, 3}, 1'000'000)});
  set.modes[1].Add({Output({4, 5, 6}, 2'000'000)});
  return set;
}

TEST(BenchReport, ComparesPromptByPromptWithAr) {
  SetResult set = TwoModes();
  const ModeFigures ar = ComputeFigures(set, set.modes[0], {});
  EXPECT_DOUBLE_EQ(ar.median, 750);  // 2 tokens in 2 ms and in 4 ms.
  EXPECT_FALSE(ar.identical.has_value());
  const ModeFigures ssd = ComputeFigures(set, set.modes[1], {});
  EXPECT_DOUBLE_EQ(ssd.speedup->value, 2);
  EXPECT_TRUE(*ssd.identical);

  set.modes[1].outputs[1].push_back(7);
  const ModeFigures different = ComputeFigures(set, set.modes[1], {});
  EXPECT_FALSE(*different.identical);
  EXPECT_EQ(different.first_different_prompt, 1);
  EXPECT_THAT(RenderSet(set, {}), HasSubstr("ssd differs from ar first at prompt 2"));
}

TEST(BenchReport, SaysWhichModesWereSlowerThanAr) {
  SetResult set = TwoModes();
  EXPECT_TRUE(SlowModes({set}, {}).empty());
  set.modes[1].tokens_per_second = {500, 250};  // Half of ar.
  set.modes[1].total.proposed = 40;
  set.modes[1].total.accepted = 0;
  EXPECT_THAT(
      SlowModes({set}, {}),
      ElementsAre("ssd ran at 0.50 times the speed of ar on 'set': 0.0% of what it proposed "
                  "was accepted"));
  set.modes[1].label = "ar@all";
  set.modes[1].mode = Mode::kAr;  // No draft is to blame.
  EXPECT_TRUE(SlowModes({set}, {}).empty());
}

TEST(DraftVerdict, SaysWhatSurelyDidNotPay) {
  // A token a round, which waits for half a pass: ar would have 1.5 tokens in the time.
  const DraftingCosts bad{.rounds = 100,
                          .tokens = 100,
                          .proposed = 600,
                          .accepted = 0,
                          .target = 80,
                          .wait = 50,
                          .host = 20};
  EXPECT_EQ(DraftVerdict(Mode::kSd, bad),
            "mode sd does not pay here: 0.0% of what it proposed was accepted, and --mode ar would "
            "be 1.50 times as fast or more");
  EXPECT_EQ(DraftVerdict(Mode::kAr, bad), "");
  EXPECT_EQ(DraftVerdict(Mode::kAuto, bad), "");
  DraftingCosts good = bad;
  good.tokens = 200;
  EXPECT_EQ(DraftVerdict(Mode::kSd, good), "");
  DraftingCosts few = bad;
  few.rounds = few.tokens = 8;
  EXPECT_EQ(DraftVerdict(Mode::kSd, few), "");
}

TEST(BenchReport, ABatchIsTimedAsAWhole) {
  ModeResult mode;
  mode.Add({Output({1, 2, 3}, 2'000'000), Output({4, 5}, 1'000'000)});
  EXPECT_THAT(mode.tokens_per_second, ElementsAre(1500));  // 3 tokens in 2 ms.
  EXPECT_THAT(mode.full_batch_rates, ElementsAre(1000));   // Until the second ends: 1 in 1 ms.
  EXPECT_EQ(mode.outputs.size(), 2U);
}

TEST(BenchReport, RanksDraftersByTheirSpeed) {
  SetResult set = TwoModes();
  EXPECT_THAT(RenderSet(set, {}), Not(HasSubstr("fastest first")));
  EXPECT_FALSE(SetsJson({set}, {})[0].contains("ranking"));
  set.modes[1].label = "ssd:slow";
  set.modes[1].drafter = "slow";
  ModeResult fast = set.modes[1];
  fast.label = "sd:quick@all";
  fast.drafter = "quick";
  fast.mode = Mode::kSd;
  for (double& rate : fast.tokens_per_second) rate *= 2;
  set.modes.push_back(fast);
  const std::string text = RenderSet(set, {});
  const std::string table = text.substr(text.find("fastest first"));
  EXPECT_THAT(table, HasSubstr("sd@all"));
  EXPECT_LT(table.find("quick"), table.find("slow"));
  EXPECT_THAT(table, Not(HasSubstr("750.0")));  // Plain decoding is no drafter.
  EXPECT_EQ(SetsJson({set}, {})[0]["ranking"], Json::array({"sd:quick@all", "ssd:slow"}));
}

TEST(BenchReport, LabelsScriptsAndClaimsNoEquality) {
  const SetResult set = TwoModes();
  const BenchContext context{.scripted = true};
  EXPECT_FALSE(ComputeFigures(set, set.modes[1], context).identical.has_value());
  const std::string table = RenderSet(set, context);
  EXPECT_THAT(table, HasSubstr("SCRIPTED"));
  EXPECT_THAT(table, HasSubstr("n/a"));
  EXPECT_TRUE(SetsJson({set}, context)[0]["modes"][1]["identical"].is_null());
}

TEST(BenchReport, ClaimsNoEqualityUnderRejection) {
  const SetResult set = TwoModes();
  const BenchContext context{.same_distribution_only = true};
  EXPECT_FALSE(ComputeFigures(set, set.modes[1], context).identical.has_value());
  EXPECT_THAT(RenderSet(set, context), HasSubstr("n/a"));
}

TEST(BenchReport, ReadBandwidthIsBytesPerTokenTimesRate) {
  const SetResult set = TwoModes();
  const BenchContext context{.weight_bytes = 1000, .kv_bytes_per_token = 10};
  const ModeFigures ar = ComputeFigures(set, set.modes[0], context);
  // 10 prompt tokens and half of 3 output tokens are in the cache on average.
  EXPECT_DOUBLE_EQ(*ar.read_gb_per_s, (1000 + 10 * 11.5) * 750 / 1e9);
  EXPECT_FALSE(ComputeFigures(set, set.modes[1], context).read_gb_per_s.has_value());
}

}  // namespace
}  // namespace foretoken
