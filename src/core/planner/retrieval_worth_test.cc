#include "core/planner/retrieval_worth.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

// Rounds of one sequence that emit four tokens in 1000 us: one in 250 us.
int AskedOf(RetrievalWorth* worth, int rounds, double asking_us, double tokens) {
  int asked = 0;
  for (int i = 0; i < rounds; ++i) {
    if (worth->AskNow()) {
      ++asked;
      worth->ObserveAsking(asking_us);
      worth->ObserveAnswer(tokens);
    }
    worth->ObserveRound(1, 4, 1000);
  }
  return asked;
}

TEST(RetrievalWorth, IsAskedWhileItEarnsWhatItTakes) {
  RetrievalWorth good(0.2);
  EXPECT_EQ(AskedOf(&good, 1000, /*asking_us=*/20, /*tokens=*/0.3), 1000);  // 75 us for 20.
  EXPECT_DOUBLE_EQ(good.tokens_per_round(), 4);
  RetrievalWorth dear(0.2);
  EXPECT_LT(AskedOf(&dear, 1000, /*asking_us=*/100, /*tokens=*/0.3), 100);
  RetrievalWorth useless(0.2);
  EXPECT_LT(AskedOf(&useless, 200, /*asking_us=*/20, /*tokens=*/0), 140);
  AskedOf(&useless, 1000, 20, 0);
  EXPECT_EQ(AskedOf(&useless, 240, 20, 0), 10);  // Once in a while it is given a chance.
  AskedOf(&useless, 10'000, 20, 0.5);
  EXPECT_EQ(AskedOf(&useless, 100, 20, 0.5), 100);  // It is taken up again when it is of use.
}

// Answers may be worth less than nothing: rows that were paid for in vain.
TEST(RetrievalWorth, LossesEndIt) {
  RetrievalWorth worth(0.2);
  EXPECT_LT(AskedOf(&worth, 240, /*asking_us=*/1, /*tokens=*/-0.5), 60);
}

}  // namespace
}  // namespace foretoken
