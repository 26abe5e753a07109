#include "apps/foretoken/common/shown_text.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(WithoutControls, LeavesTextsAsTheyAre) {
  for (const char* text : {"", "a b\n\tc", "caf\xC3\xA9 \xF0\x9F\x98\x80 \xC2\xA0"}) {
    EXPECT_EQ(WithoutControls(text), text);
  }
}

TEST(WithoutControls, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(WithoutControls("\x1b[31mred\x1b]0;title\x07"), "␛[31mred␛]0;title␇");
  EXPECT_EQ(WithoutControls("a\rb\bc\x7F"), "a␍b␈c␡");
  EXPECT_EQ(WithoutControls(std::string("\0", 1)), "␀");
  // The one-character form of an escape and a bracket, and a byte of its own.
  EXPECT_EQ(WithoutControls("\xC2\x9B"
                            "2J\x9B"),
            "\uFFFD2J\uFFFD");
}

TEST(ShownText, IsWhatItIsInFiles) {
  std::FILE* const file = std::tmpfile();
  EXPECT_EQ(ShownText("\x1b[0m", file), "\x1b[0m");
  std::fclose(file);
}

}  // namespace
}  // namespace foretoken
