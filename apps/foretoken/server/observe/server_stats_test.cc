#include "apps/foretoken/server/observe/server_stats.h"

#include <gtest/gtest.h>

namespace foretoken::server {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(RateWindow, IsTheRateOfTheLastSeconds) {
  RateWindow window;
  for (std::int64_t now = 0; now < 10 * kSecond; now += kSecond / 20) window.Add(now, 5);
  EXPECT_NEAR(window.PerSecond(10 * kSecond), 100, 5);
  EXPECT_NEAR(window.PerSecond(11 * kSecond), 66, 8);
  EXPECT_EQ(window.PerSecond(14 * kSecond), 0);
  window.Add(60 * kSecond, 29);  // Nothing of the time before counts again.
  EXPECT_NEAR(window.PerSecond(61 * kSecond), 10, 0.1);
}

TEST(DurationBuckets, ABoundBelongsToItsBucket) {
  DurationBuckets buckets;
  buckets.Add(0.001);
  buckets.Add(0.0011);
  buckets.Add(1000);
  EXPECT_EQ(buckets.counts[0], 1);
  EXPECT_EQ(buckets.counts[1], 1);
  EXPECT_EQ(buckets.counts.back(), 1);
  EXPECT_EQ(buckets.count, 3);
}

TEST(StatsRecorder, RoundsCountByPosition) {
  const std::array<Token, 3> proposed = {1, 2, 3};
  RoundRecord round{.mode = Mode::kSsd, .lookahead = 6, .source = ProposalSource::kCache};
  StatsRecorder recorder;
  recorder.AddRound(round);
  round.proposed = proposed;
  round.accepted = 2;
  round.hit = true;
  recorder.AddRound(round);
  round.accepted = 0;
  round.hit = false;
  recorder.AddRound(round);
  recorder.AddToken(Mode::kSsd, TokenOrigin::kBonus);
  recorder.Publish(kSecond);
  const ServerTotals totals = recorder.Published();
  const Mode mode = Mode::kSsd;
  EXPECT_EQ(totals.modes[mode].rounds, 3);
  EXPECT_EQ(totals.planned_rounds[mode][6], 3);
  EXPECT_EQ(totals.drafts, 2);
  EXPECT_EQ(totals.draft_tokens, 6);
  EXPECT_EQ(totals.accepted_tokens, 2);
  EXPECT_EQ(totals.accepted_at[0], 1);
  EXPECT_EQ(totals.accepted_at[1], 1);
  EXPECT_EQ(totals.accepted_at[2], 0);
  EXPECT_EQ(totals.lookups_at[0], 1);
  EXPECT_EQ(totals.hits_at[0], 0);
  EXPECT_EQ(totals.lookups_at[2], 1);
  EXPECT_EQ(totals.hits_at[2], 1);
  EXPECT_EQ(totals.output_tokens, 1);
}

}  // namespace
}  // namespace foretoken::server
