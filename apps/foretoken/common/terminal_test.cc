#include "apps/foretoken/common/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Terminal, TablesAlignByCharacters) {
  TextTable table({"mode", "x"});
  table.Add({"é", "1.25"});
  EXPECT_EQ(table.Render(1), " mode     x\n ----------\n é     1.25\n");
}

TEST(Terminal, FormatsKeepThreeDigits) {
  EXPECT_EQ(FormatBytes(999), "999 bytes");
  EXPECT_EQ(FormatBytes(10.5e6), "10.5 MB");
  EXPECT_EQ(FormatCount(134.5e6), "134M");
  EXPECT_EQ(FormatCount(5.25e6), "5.25M");
  EXPECT_EQ(FormatDuration(812), "812 ns");
  EXPECT_EQ(FormatDuration(3.41e6), "3.41 ms");
  EXPECT_EQ(FormatPercent(-1), "-");
  EXPECT_EQ(FormatPercent(0.3844), "38.4%");
}

TEST(Terminal, FormatsAboutThreeDigits) {
  EXPECT_EQ(FormatNumber(0), "0.00");
  EXPECT_EQ(FormatNumber(0.01234), "0.0123");
  EXPECT_EQ(FormatNumber(1.234), "1.23");
  EXPECT_EQ(FormatNumber(45.67), "45.7");
  EXPECT_EQ(FormatNumber(12345.6), "12346");
}

TEST(Terminal, OriginsAreTextWithoutColour) {
  EXPECT_EQ(Painter(false).Paint(TokenOrigin::kAccepted, "a"), "a");
  const Painter painter(true);
  EXPECT_THAT(painter.Paint(TokenOrigin::kAccepted, "a"),
              AllOf(HasSubstr("a"), HasSubstr("\x1b[0m")));
  EXPECT_NE(painter.Paint(TokenOrigin::kAccepted, "a"), painter.Paint(TokenOrigin::kBonus, "a"));
  EXPECT_EQ(painter.Paint(TokenOrigin::kBonus, ""), "");
}

}  // namespace
}  // namespace foretoken
