#include "core/planner/warm_up.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

int RoundsUntilWarmedUp(WarmUp* warm_up, const PassObservation& pass) {
  int rounds = 1;
  while (!warm_up->Observe(pass)) ++rounds;
  return rounds;
}

TEST(WarmUp, WaitsUntilTheDraftHasReadTheContexts) {
  WarmUp warm_up;
  const PassObservation reads{.sequences = 4, .rows = 4, .mode = Mode::kSsd};
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(warm_up.Observe(reads));
  const PassObservation verifies{.sequences = 4, .rows = 6, .mode = Mode::kSsd};
  EXPECT_EQ(RoundsUntilWarmedUp(&warm_up, verifies), 3);
  warm_up.Restart();
  EXPECT_EQ(RoundsUntilWarmedUp(&warm_up, reads), 64 + 3);  // But not for ever.
}

// Other modes have nothing to read but SD, which does so before its first round is over.
TEST(WarmUp, ConcernsSsdOnly) {
  WarmUp warm_up;
  EXPECT_EQ(RoundsUntilWarmedUp(&warm_up, {.mode = Mode::kAr}), 3);
  // Where the modes differ, one sequence tries something: whether its draft has read shows in rows.
  warm_up.Restart();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(warm_up.Observe({.sequences = 2, .rows = 2}));
  EXPECT_EQ(RoundsUntilWarmedUp(&warm_up, {.sequences = 2, .rows = 3}), 3);
}

}  // namespace
}  // namespace foretoken
