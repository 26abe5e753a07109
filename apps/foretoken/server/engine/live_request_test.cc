#include "apps/foretoken/server/engine/live_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken::server {
namespace {

// A live request with the engine's thread played by the test.
struct Live {
  explicit Live(int choices, Detail detail) : request(choices, detail, &recorder) {
    request.set_touched(&touched);
  }
  void Round(int choice, int number) {
    request.listener(choice)->OnRound(1, {.round = number, .round_ns = 1'500'000});
  }
  void Emit(int choice, Token token, std::string_view text) {
    request.listener(choice)->OnToken(
        1, {.token = token, .origin = TokenOrigin::kAccepted, .text = text});
  }
  void Finish(int choice) {
    request.listener(choice)->OnFinish(1, FinishReason::kMaxTokens, {.output_tokens = 3});
  }

  StatsRecorder recorder;
  std::vector<LiveRequest*> touched;
  LiveRequest request;
  std::vector<Burst> bursts;
};

TEST(LiveRequest, BurstsOfAChoiceJoinUntilTheyAreTaken) {
  Live live(2, Detail::kText);
  live.Emit(0, 1, "a");
  live.Emit(1, 1, "x");
  live.Emit(0, 2, "b");
  EXPECT_EQ(live.touched.size(), 1U);
  EXPECT_FALSE(live.request.Publish());
  live.Emit(0, 3, "c");
  live.Finish(0);
  EXPECT_FALSE(live.request.Publish());
  live.request.Take(&live.bursts);
  ASSERT_EQ(live.bursts.size(), 2U);
  EXPECT_EQ(live.bursts[0].text, "abc");
  EXPECT_TRUE(live.bursts[0].ending.has_value());
  EXPECT_EQ(live.bursts[1].text, "x");
  EXPECT_FALSE(live.request.Finished());
  live.Finish(1);
  EXPECT_TRUE(live.request.Publish());
  EXPECT_FALSE(live.request.Finished());  // Its last burst is still to be taken.
  live.request.Take(&live.bursts);
  EXPECT_TRUE(live.request.Finished());
}

TEST(LiveRequest, TracedRoundsStayApart) {
  Live live(1, Detail::kRounds);
  for (int round = 1; round <= 3; ++round) {
    live.Round(0, round);
    live.Emit(0, 5, "a");
    live.Emit(0, 6, "b");
    live.request.Publish();
  }
  live.request.Take(&live.bursts);
  ASSERT_EQ(live.bursts.size(), 3U);
  EXPECT_EQ(live.bursts[2].round->round, 3);
  EXPECT_EQ(live.bursts[2].tokens.size(), 2U);
  EXPECT_EQ(live.bursts[2].text, "ab");
}

TEST(LiveRequest, WhoWaitsIsWokenOnce) {
  Live live(1, Detail::kText);
  int woken = 0;
  const auto wake = [&woken] { ++woken; };
  EXPECT_TRUE(live.request.Await(/*all=*/false, wake));
  live.Emit(0, 1, "a");
  EXPECT_EQ(woken, 0);
  live.request.Publish();
  EXPECT_EQ(woken, 1);
  live.Emit(0, 2, "b");
  live.request.Publish();
  EXPECT_EQ(woken, 1);
  EXPECT_FALSE(live.request.Await(/*all=*/false, wake));  // There is something already.
}

TEST(LiveRequest, WhoWaitsForTheEndIsNotWokenBefore) {
  Live live(2, Detail::kText);
  int woken = 0;
  EXPECT_TRUE(live.request.Await(/*all=*/true, [&woken] { ++woken; }));
  live.Emit(0, 1, "a");
  live.Finish(0);
  live.request.Publish();
  EXPECT_EQ(woken, 0);
  live.Finish(1);
  live.request.Publish();
  EXPECT_EQ(woken, 1);
  EXPECT_FALSE(live.request.Await(/*all=*/true, [] {}));
}

TEST(LiveRequest, TheFirstReasonOfAnAbortStays) {
  Live live(1, Detail::kText);
  live.request.NoteAbort(AbortReason::kTimeout);
  live.request.NoteAbort(AbortReason::kShutdown);
  EXPECT_EQ(live.request.abort_reason(), AbortReason::kTimeout);
}

}  // namespace
}  // namespace foretoken::server
