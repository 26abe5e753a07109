#include "apps/lab/bench/lossy_cost.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(LastNumber, ReadsWhatAnswersEndWith) {
  EXPECT_EQ(LastNumber("16 - 3 - 4 = <<16-3-4=9>>9 eggs.\n#### 18"), "18");
  EXPECT_EQ(LastNumber("That makes $1,234.50."), "1234.5");
  EXPECT_EQ(LastNumber("It is -3.0, I think"), "-3");
  EXPECT_EQ(LastNumber("12"), "12");
  EXPECT_EQ(LastNumber("none, or many"), "");
  EXPECT_EQ(LastNumber(""), "");
}

}  // namespace
}  // namespace foretoken
