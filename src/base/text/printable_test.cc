#include "base/text/printable.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(Printable, IsShortAndPlain) {
  EXPECT_EQ(Printable("a\x1B[31m\n"), "a?[31m?");
  EXPECT_EQ(Printable(std::string(500, 'x')).size(), 123U);
}

}  // namespace
}  // namespace foretoken
