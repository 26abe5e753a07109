#include "apps/foretoken/program/near_miss.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

TEST(EditDistance, CountsMistakesAndSwapsAsOne) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("temp", "temp"), 0);
  EXPECT_EQ(EditDistance("temp", "temps"), 1);
  EXPECT_EQ(EditDistance("tepm", "temp"), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
}

TEST(NearMiss, IsTheNearestThatIsNearEnough) {
  const std::vector<std::string> names = {"temp",  "temperature", "max-tokens",
                                          "top-k", "n",           "mode"};
  EXPECT_EQ(NearMiss("temprature", names), "temperature");
  EXPECT_EQ(NearMiss("max-token", names), "max-tokens");
  EXPECT_EQ(NearMiss("tempera", names), "temperature");  // A beginning.
  EXPECT_EQ(NearMiss("tpo-k", names), "top-k");
  EXPECT_EQ(NearMiss("warp", names), "");
  EXPECT_EQ(NearMiss("q", names), "");  // Every letter is wrong.
  EXPECT_EQ(NearMiss("x", {}), "");
  EXPECT_EQ(Suggestion("mod", names, "--"), "; did you mean --mode?");
  EXPECT_EQ(Suggestion("warp", names, "--"), "");
}

}  // namespace
}  // namespace foretoken
