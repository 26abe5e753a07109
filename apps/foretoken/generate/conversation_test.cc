#include "apps/foretoken/generate/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

using ::testing::HasSubstr;

TEST(Conversation, ComesBackAsItWasSaved) {
  const Conversation said{"Be brief.", {{"user", "Hi \"é\"\n"}, {"assistant", "Hello"}}};
  const auto read = ParseConversation(FormatConversation(said), "file");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->system, "Be brief.");
  ASSERT_EQ(read->messages.size(), 2U);
  EXPECT_EQ(read->messages[0].content, "Hi \"é\"\n");
  EXPECT_EQ(read->messages[1].role, "assistant");
  EXPECT_EQ(read->WithSystem().front().role, "system");
}

TEST(Conversation, GivesTheLastTurnBack) {
  Conversation said{"", {{"user", "a"}, {"assistant", "b"}, {"user", "c"}, {"assistant", "d"}}};
  EXPECT_EQ(said.TakeLastTurn(), "c");
  EXPECT_EQ(said.messages.size(), 2U);
  EXPECT_EQ(said.TakeLastTurn(), "a");
  EXPECT_EQ(said.TakeLastTurn(), "");
}

TEST(Conversation, RefusesWhatIsNone) {
  const auto refusal = [](std::string_view text) {
    const auto read = ParseConversation(text, "talk.json");
    return read.ok() ? std::string("accepted") : read.error().message;
  };
  for (const char* text : {"", "[]", "{}", R"({"messages": 3})"}) {
    EXPECT_THAT(refusal(text), HasSubstr("'talk.json' is no saved conversation")) << text;
  }
  EXPECT_THAT(refusal(R"({"messages": [{"role": "user"}]})"), HasSubstr("lacks role or content"));
  EXPECT_THAT(refusal(R"({"messages": [{"role": "assistant", "content": "a"}]})"),
              HasSubstr("message 1 is of 'assistant', where 'user' should speak"));
  EXPECT_THAT(refusal(R"({"messages": [{"role": "user", "content": "a"}]})"),
              HasSubstr("the last turn has no reply"));
}

}  // namespace
}  // namespace foretoken
