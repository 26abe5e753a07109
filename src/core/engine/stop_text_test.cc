#include "core/engine/stop_text.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(StopText, SaysWhichStringWasFound) {
  StopText stops({"never", "lo w", "o"});
  std::string shown;
  EXPECT_FALSE(stops.Push("Hel", &shown));
  EXPECT_EQ(stops.found(), -1);
  EXPECT_TRUE(stops.Push("lo world", &shown));
  EXPECT_EQ(shown, "Hel");
  EXPECT_EQ(stops.found(), 1);  // Among complete strings the one that begins first counts.
}

TEST(StopText, OfTwoThatBeginTogetherTheFirstGivenCounts) {
  StopText stops({"ab", "a"});
  std::string shown;
  EXPECT_TRUE(stops.Push("xab", &shown));
  EXPECT_EQ(shown, "x");
  EXPECT_EQ(stops.found(), 0);
}

}  // namespace
}  // namespace foretoken
