#include "apps/lab/rollout/tail_plan.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(TailPlan, RowsThatBecomeFreeGoToThoseThatAreLeft) {
  const TailPlan tail{.mode = Mode::kSd, .rows = 32, .lookahead = 12};
  EXPECT_FALSE(tail.For(32).has_value());
  EXPECT_FALSE(tail.For(17).has_value());
  EXPECT_EQ(tail.For(16)->mode, Mode::kSd);
  EXPECT_EQ(tail.For(16)->lookahead, 1);
  EXPECT_EQ(tail.For(8)->lookahead, 3);
  EXPECT_EQ(tail.For(5)->lookahead, 5);
  EXPECT_EQ(tail.For(1)->lookahead, 12);
  EXPECT_FALSE(tail.For(1)->speculation_length.has_value());
}

TEST(TailPlan, TreesHaveRowsForAllOfThem) {
  const TailPlan tail{.mode = Mode::kTrie, .rows = 32, .lookahead = 12};
  EXPECT_EQ(tail.For(4)->lookahead, 7);
  EXPECT_EQ(tail.For(4)->speculation_length, 8);
}

TEST(TailPlan, LeavesAFixedLookahead) {
  const TailPlan tail{.mode = Mode::kTrie, .rows = 32, .lookahead = 4, .fixed = true};
  EXPECT_FALSE(tail.For(20).has_value());
  EXPECT_EQ(tail.For(16)->mode, Mode::kTrie);
  EXPECT_FALSE(tail.For(1)->lookahead.has_value());
  EXPECT_FALSE(tail.For(1)->speculation_length.has_value());
}

TEST(TailPlan, PlainOnesStayPlainAndAutoPlansItself) {
  EXPECT_FALSE((TailPlan{.mode = Mode::kAr, .rows = 32, .lookahead = 12}).For(1).has_value());
  const auto plan = TailPlan{.mode = Mode::kAuto, .rows = 32, .lookahead = 12}.For(2);
  EXPECT_EQ(plan->mode, Mode::kAuto);
  EXPECT_FALSE(plan->lookahead.has_value());
}

}  // namespace
}  // namespace foretoken
