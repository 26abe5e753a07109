#include "core/planner/loss_budget.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

constexpr double kPlainUs = 1000;

TEST(LossBudget, ExceedsItsLimitAndNeedsRoomForAnotherAttempt) {
  LossBudget budget;
  int rounds = 0;
  for (; !budget.exceeded() && rounds < 100; ++rounds) {
    budget.AddLoss(kPlainUs, kPlainUs);
    budget.Update(0, kPlainUs);
  }
  EXPECT_EQ(rounds, 9);  // Eight plain rounds are its limit.
  // Time alone pays: 0.5 % of it. One round's room is not enough.
  budget.Update(2 * kPlainUs / 0.005, kPlainUs);
  EXPECT_TRUE(budget.exceeded());
  budget.Update(4 * kPlainUs / 0.005, kPlainUs);
  EXPECT_FALSE(budget.exceeded());
}

TEST(LossBudget, AnAttemptNeedsRoomForWhatItsDraftReads) {
  LossBudget budget;
  EXPECT_TRUE(budget.HasRoomFor(1000 * kPlainUs, kPlainUs)) << "nothing was tried yet";
  budget.AddLoss(3 * kPlainUs, kPlainUs);
  budget.Update(0, kPlainUs);  // Five rounds are left of eight, two of them for drafting.
  EXPECT_TRUE(budget.HasRoomFor(3 * kPlainUs, kPlainUs));
  EXPECT_FALSE(budget.HasRoomFor(4 * kPlainUs, kPlainUs));
  budget.AddLoss(-2 * kPlainUs, kPlainUs);
  budget.Update(0, kPlainUs);
  EXPECT_TRUE(budget.HasRoomFor(1000 * kPlainUs, kPlainUs)) << "more than five rounds need not fit";
}

TEST(LossBudget, KeepsSomeOfWhatWasGained) {
  LossBudget budget;
  for (int i = 0; i < 1000; ++i) budget.AddLoss(-kPlainUs, kPlainUs);
  int rounds = 0;
  for (; !budget.exceeded() && rounds < 1000; ++rounds) {
    budget.AddLoss(kPlainUs, kPlainUs);
    budget.Update(0, kPlainUs);
  }
  EXPECT_EQ(rounds, 64 + 9);
}

}  // namespace
}  // namespace foretoken
