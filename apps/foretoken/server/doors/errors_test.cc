#include "apps/foretoken/server/doors/door_testing.h"
#include "apps/foretoken/server/doors/doors.h"

namespace foretoken::server {
namespace {

using ::testing::HasSubstr;

std::string SentenceOf(const Door& door, const PromptTooLong& prompt) {
  const auto body = Json::Parse(door.error(Refusal(prompt, std::string(door.prompt))));
  return body["error"]["message"];
}

// The sentences are those by which agents know that a chat must be shortened.
TEST(Errors, APromptThatIsTooLongIsSaidInTheWordsOfTheApi) {
  const PromptTooLong prompt{.tokens = 9000, .most = 511, .context = 512};
  for (const Door* door : {&ChatDoor(), &CompletionDoor(), &ResponsesDoor(), &EmbeddingsDoor()}) {
    const std::string field(door->prompt);
    EXPECT_EQ(SentenceOf(*door, prompt),
              "This model's maximum context length is 512 tokens. "
              "However, your " +
                  field +
                  " resulted in 9000 tokens, and "
                  "a prompt may have 511 at most. Please reduce the length "
                  "of the " +
                  field + ".");
    const auto error = Json::Parse(door->error(Refusal(prompt, field)))["error"];
    EXPECT_EQ(error["code"], "context_length_exceeded");
    EXPECT_EQ(error["param"], field);
  }
  EXPECT_EQ(AnthropicDoor().error(Refusal(prompt, "messages")),
            R"({"type":"error","error":{"type":"invalid_request_error",)"
            R"("message":"prompt is too long: 9000 tokens > 511 maximum"}})");
}

TEST(Errors, APromptThatIsTooLongToBeCountedHasAtLeastSoManyTokens) {
  const PromptTooLong prompt{.tokens = 9000, .at_least = true, .most = 511, .context = 512};
  EXPECT_THAT(SentenceOf(ChatDoor(), prompt), HasSubstr("resulted in at least 9000 tokens"));
  EXPECT_EQ(SentenceOf(AnthropicDoor(), prompt),
            "prompt is too long: at least 9000 tokens > 511 maximum");
}

}  // namespace
}  // namespace foretoken::server
