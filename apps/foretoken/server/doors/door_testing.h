#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/foretoken/server/api/door.h"

namespace foretoken::server {

/// The field of a chat with one message.
inline constexpr char kGreeting[] = R"("messages":[{"role":"user","content":"Hi"}])";

/// What the door makes of a body, or a failed test.
inline ApiRequest MustRead(const Door& door, const std::string& body) {
  Result<ApiRequest> request = door.read(body, {});
  EXPECT_TRUE(request.ok()) << body << ": " << request.error().message;
  return request.ok() ? *request : ApiRequest{};
}

inline void ExpectRefused(const Door& door, const std::string& body, const std::string& field,
                          const std::string& saying) {
  const Result<ApiRequest> request = door.read(body, {});
  ASSERT_FALSE(request.ok()) << body;
  EXPECT_EQ(request.error().field, field) << body;
  EXPECT_THAT(request.error().message, ::testing::HasSubstr(saying)) << body;
}

/// Seven tokens, four of them cached, were answered by three.
inline Ending EndingBy(FinishReason reason, int stop_string = -1) {
  return {.reason = reason,
          .stats = {.prompt_tokens = 7,
                    .cached_prompt_tokens = 4,
                    .output_tokens = 3,
                    .stop_string = stop_string,
                    .submitted_ns = 1'000,
                    .first_token_ns = 3'000,
                    .finished_ns = 10'000}};
}

/// All that the door sends where "Hel" and "lo\n" are generated.
inline std::string Answer(const Door& door, const ApiRequest& request, const Ending& ending) {
  const auto writer = door.writer(request,
                                  {.id = std::string(door.id_prefix) + "1",
                                   .created = 1'700'000'000,
                                   .model = "m",
                                   .prompt_tokens = 7},
                                  nullptr);
  const std::vector<std::string> echoed(request.prompts.size(), "prompt");
  std::string out;
  writer->Start(echoed, &out);
  std::vector<TokenPart> first(1);
  first[0].token = 5;
  const auto said = [](std::string_view text) {
    return std::vector<ChatPart>{{ChatPart::Kind::kContent, std::string(text)}};
  };
  writer->Add({.text = "Hel", .parts = said("Hel"), .tokens = first}, &out);
  writer->Add({.text = "lo\n", .parts = said("lo\n"), .tokens = first, .ending = ending}, &out);
  writer->End(&out);
  return out;
}

struct NamedEvent {
  std::string name;
  Json data;
};

/// The server-sent events of a stream, each with a name where the API gives them one.
inline std::vector<NamedEvent> Events(std::string_view stream) {
  std::vector<NamedEvent> events;
  while (!stream.empty()) {
    const std::size_t end = stream.find("\n\n");
    EXPECT_NE(end, std::string_view::npos) << "an event without an end: " << stream;
    if (end == std::string_view::npos) break;
    const std::string_view event = stream.substr(0, end);
    const std::size_t data = event.find("data: ");
    std::string name;
    if (event.starts_with("event: ")) name = event.substr(7, data - 8);
    events.push_back({std::move(name), Json::Parse(event.substr(data + 6))});
    stream.remove_prefix(end + 2);
  }
  return events;
}

}  // namespace foretoken::server
