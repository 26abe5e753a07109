#include "core/planner/speculation_debt.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

constexpr double kPlainUs = 1000;

TEST(SpeculationDebt, ExceedsItsLimitAndNeedsRoomForAnotherAttempt) {
  SpeculationDebt debt;
  int rounds = 0;
  for (; !debt.exceeded() && rounds < 100; ++rounds) {
    debt.Add(kPlainUs, kPlainUs);
    debt.Judge(0, kPlainUs);
  }
  EXPECT_EQ(rounds, 9);  // Eight plain rounds are its limit.
  // Time alone pays: 0.5 % of it. One round's room is not enough.
  debt.Judge(2 * kPlainUs / 0.005, kPlainUs);
  EXPECT_TRUE(debt.exceeded());
  debt.Judge(4 * kPlainUs / 0.005, kPlainUs);
  EXPECT_FALSE(debt.exceeded());
}

TEST(SpeculationDebt, AnAttemptNeedsRoomForWhatItsDraftReads) {
  SpeculationDebt debt;
  EXPECT_TRUE(debt.HasRoomFor(1000 * kPlainUs, kPlainUs)) << "nothing was tried yet";
  debt.Add(3 * kPlainUs, kPlainUs);
  debt.Judge(0, kPlainUs);  // Five rounds are left of eight, two of them for drafting.
  EXPECT_TRUE(debt.HasRoomFor(3 * kPlainUs, kPlainUs));
  EXPECT_FALSE(debt.HasRoomFor(4 * kPlainUs, kPlainUs));
  debt.Add(-2 * kPlainUs, kPlainUs);
  debt.Judge(0, kPlainUs);
  EXPECT_TRUE(debt.HasRoomFor(1000 * kPlainUs, kPlainUs)) << "more than five rounds need not fit";
}

TEST(SpeculationDebt, KeepsSomeOfWhatWasGained) {
  SpeculationDebt debt;
  for (int i = 0; i < 1000; ++i) debt.Add(-kPlainUs, kPlainUs);
  int rounds = 0;
  for (; !debt.exceeded() && rounds < 1000; ++rounds) {
    debt.Add(kPlainUs, kPlainUs);
    debt.Judge(0, kPlainUs);
  }
  EXPECT_EQ(rounds, 64 + 9);
}

}  // namespace
}  // namespace foretoken
