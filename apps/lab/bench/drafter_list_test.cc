#include "apps/lab/bench/drafter_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

using ::testing::HasSubstr;

TEST(DrafterList, NamesWhatDrafts) {
  const auto drafters = ParseDrafters(
      "models/small/, heads=old/eagle3, self:mtp, ngram, x/tiny.Q4_0.gguf, a/b=c, "
      "self:exit=2, early=self:exit=3");
  ASSERT_TRUE(drafters.ok()) << drafters.error().message;
  ASSERT_EQ(drafters->size(), 8U);
  EXPECT_EQ((*drafters)[0].name, "small");
  EXPECT_EQ((*drafters)[0].draft, "models/small/");
  EXPECT_EQ((*drafters)[1].name, "heads");
  EXPECT_EQ((*drafters)[1].draft, "old/eagle3");
  EXPECT_EQ((*drafters)[2].name, "mtp");
  EXPECT_EQ((*drafters)[2].draft, "self:mtp");
  EXPECT_EQ((*drafters)[3].mode, Mode::kNgram);
  EXPECT_EQ((*drafters)[3].draft, "");
  EXPECT_EQ((*drafters)[4].name, "tiny.Q4_0");
  EXPECT_EQ((*drafters)[5].name, "b=c");  // The path has the '='.
  EXPECT_EQ((*drafters)[6].name, "exit=2");
  EXPECT_EQ((*drafters)[6].draft, "self:exit=2");
  EXPECT_EQ((*drafters)[7].name, "early");
  EXPECT_EQ((*drafters)[7].draft, "self:exit=3");
}

TEST(DrafterList, SaysWhatIsWrong) {
  EXPECT_THAT(ParseDrafters("").error().message, HasSubstr("no drafter"));
  EXPECT_THAT(ParseDrafters("a/x,b/x").error().message, HasSubstr("two that are called x"));
  EXPECT_THAT(ParseDrafters("=x").error().message, HasSubstr("NAME=PATH"));
  EXPECT_THAT(ParseDrafters("x=").error().message, HasSubstr("NAME=PATH"));
  for (const char* mode : {"ar", "sd", "ssd", "auto"}) {
    EXPECT_THAT(ParseDrafters(mode).error().message, HasSubstr("is a mode")) << mode;
  }
}

}  // namespace
}  // namespace foretoken
