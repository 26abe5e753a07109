#include "core/planner/settling.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

int RoundsUntilSettled(Settling* settling, const PassObservation& pass) {
  int rounds = 1;
  while (!settling->Observe(pass)) ++rounds;
  return rounds;
}

TEST(Settling, WaitsUntilTheDraftHasReadTheContexts) {
  Settling settling;
  const PassObservation reads{.sequences = 4, .rows = 4, .mode = Mode::kSsd};
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(settling.Observe(reads));
  const PassObservation verifies{.sequences = 4, .rows = 6, .mode = Mode::kSsd};
  EXPECT_EQ(RoundsUntilSettled(&settling, verifies), 3);
  settling.Restart();
  EXPECT_EQ(RoundsUntilSettled(&settling, reads), 64 + 3);  // But not for ever.
}

// Other modes have nothing to read but SD, which does so before its first round is over.
TEST(Settling, ConcernsSsdOnly) {
  Settling settling;
  EXPECT_EQ(RoundsUntilSettled(&settling, {.mode = Mode::kAr}), 3);
  // Where the modes differ, one sequence tries something: whether its draft has read shows in rows.
  settling.Restart();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(settling.Observe({.sequences = 2, .rows = 2}));
  EXPECT_EQ(RoundsUntilSettled(&settling, {.sequences = 2, .rows = 3}), 3);
}

}  // namespace
}  // namespace foretoken
