// Bodies of a megabyte that would take minutes if what is read of them were searched from front to
// back for each member. Whoever has a key may send them.

#include <fmt/format.h>

#include <ctime>

#include "apps/foretoken/server/doors/door_testing.h"
#include "apps/foretoken/server/doors/doors.h"

namespace foretoken::server {
namespace {

// A limit of processor time: other work on the machine does not count.
constexpr double kSoonSeconds = 6;

// An object of so many members.
std::string Members(int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("{}\"{:x}\":1", i == 0 ? "" : ",", i);
  return text + "}";
}

ApiRequest ReadSoon(const Door& door, const std::string& body) {
  const std::clock_t start = std::clock();
  Result<ApiRequest> request = door.read(body, {});
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kSoonSeconds);
  EXPECT_TRUE(request.ok()) << request.error().message;
  return request.ok() ? *request : ApiRequest{};
}

TEST(LargeBodies, ToolsBesideManyMembers) {
  const std::string many = Members(150'000);
  const ApiRequest openai =
      ReadSoon(ChatDoor(), fmt::format(R"({{{},"metadata":{},"tools":[{{"type":"function",)"
                                       R"("function":{{"name":"f"}}}}]}})",
                                       kGreeting, many));
  EXPECT_EQ(openai.tools.size(), 1U);
  const ApiRequest anthropic = ReadSoon(
      AnthropicDoor(), fmt::format(R"({{{},"max_tokens":9,"metadata":{},"tools":[{{"name":"f",)"
                                   R"("input_schema":{{"type":"object"}}}}]}})",
                                   kGreeting, many));
  EXPECT_EQ(anthropic.tools.size(), 1U);
}

TEST(LargeBodies, CallsOfOneTurn) {
  constexpr int kCalls = 10'000;
  std::string items = R"({"role":"user","content":"Hi"})";
  for (int i = 0; i < kCalls; ++i) {
    items += fmt::format(R"(,{{"type":"function_call","call_id":"1","name":"f","arguments":)"
                         R"("{{\"n\":{}}}"}})",
                         i);
  }
  items += R"(,{"role":"user","content":"And?"})";
  const ApiRequest request = ReadSoon(ResponsesDoor(), R"({"input":[)" + items + "]}");
  ASSERT_EQ(request.chat.messages.size(), 3U);
  const auto more = Json::Parse(request.chat.messages[1].more);
  ASSERT_EQ(more["tool_calls"].size(), std::size_t{kCalls});
  EXPECT_EQ(more["tool_calls"][kCalls - 1]["function"]["arguments"]["n"], kCalls - 1);
}

}  // namespace
}  // namespace foretoken::server
