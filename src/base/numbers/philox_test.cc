#include <gtest/gtest.h>

#include "base/numbers/philox.h"

namespace foretoken {
namespace {

// Known-answer vectors published with Random123 for philox4x32-10.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, 0),
            (PhiloxBlock{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}));
  EXPECT_EQ(Philox4x32({0xffffffffU, 0xffffffffU, 0xffffffffU, 0xffffffffU}, ~0ULL),
            (PhiloxBlock{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}));
}

}  // namespace
}  // namespace foretoken
