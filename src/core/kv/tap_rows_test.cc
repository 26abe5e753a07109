#include "core/kv/tap_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

using testing::ElementsAre;

TEST(TapRows, ReadersShareWhatBothReadInOnePiece) {
  TapShape kept;
  const auto add = [&kept](std::vector<int> points) {
    return AddTaps({.points = std::move(points), .hidden = 8}, &kept);
  };
  const TapPart first = add({1, 2, 3});
  EXPECT_EQ(first.first, 0);
  EXPECT_EQ(first.width, 24);
  const TapPart within = add({2, 3});
  EXPECT_EQ(within.first, 8);
  EXPECT_EQ(within.width, 16);
  const TapPart apart = add({1, 3});  // Both are there, but not side by side.
  EXPECT_EQ(apart.first, 24);
  EXPECT_EQ(apart.width, 16);
  const TapPart nothing = add({});
  EXPECT_EQ(nothing.width, 0);
  EXPECT_THAT(kept.points, ElementsAre(1, 2, 3, 1, 3));
  EXPECT_EQ(kept.hidden, 8);
}

}  // namespace
}  // namespace foretoken
