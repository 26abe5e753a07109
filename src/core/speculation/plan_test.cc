#include "core/speculation/plan.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

FanoutShape ListedFanouts(std::initializer_list<int> fanouts) {
  FanoutShape shape;
  for (const int fanout : fanouts) shape.at.push_back(static_cast<std::uint8_t>(fanout));
  return shape;
}

TEST(FanoutShape, TheEndOfAShortProposalIsItsLastNode) {
  const FanoutShape given = ListedFanouts({5, 4, 3, 2});
  EXPECT_EQ(given.At(1, 3), 4);
  EXPECT_EQ(given.At(3, 3), 2);
  EXPECT_EQ(given.At(1, 1), 2);  // As its user said: F_K at the end, wherever that is.
  EXPECT_EQ(given.At(0, 0), 2);
  EXPECT_EQ(given.Most(1), 4);
}

TEST(FanoutShape, ABudgetIsSpentWhateverTheLength) {
  FanoutShape handed_out = ListedFanouts({5, 4, 3, 0});
  handed_out.spends_budget = true;
  for (int length = 0; length <= 3; ++length) {
    int spent = 0;
    for (int k = 0; k <= length; ++k) spent += handed_out.At(k, length);
    EXPECT_EQ(spent, handed_out.budget()) << length;
  }
  EXPECT_EQ(handed_out.At(3, 3), 0);
  EXPECT_EQ(handed_out.Most(1), 7);
  FanoutShape large = EvenFanout(60, 5);
  EXPECT_TRUE(large.spends_budget);
  EXPECT_EQ(large.At(0, 0), kMaxFanout);
}

}  // namespace
}  // namespace foretoken
