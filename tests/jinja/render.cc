// Renders templates for tests: each line of the standard input is a JSON object with a `template`
// and the variables it is rendered with, `data`, or the `messages` and `tools` of a chat; for each
// a line goes out with `text` or `error`.
// strftime_now() knows one moment, Friday the 5th of January 2024, 07:08:09.
#include <ctime>
#include <iostream>
#include <string>

#include "base/result.h"
#include "json/json.h"
#include "text/jinja/template.h"
#include "text/tokenizer/template/chat_template.h"

namespace {

using foretoken::Json;
using foretoken::Result;
using foretoken::jinja::Text;

Result<Text> RenderVariables(const std::string& source, const Json& data, const std::tm& now) {
  FT_ASSIGN_OR_RETURN(const auto parsed, foretoken::jinja::Template::Parse(source));
  return parsed.Render({.data = data, .now = &now});
}

Result<Text> RenderChat(const std::string& source, const Json& job, const std::tm& now) {
  FT_ASSIGN_OR_RETURN(const auto parsed, foretoken::ChatTemplate::Parse(source, {}));
  foretoken::ChatInput chat{.tools = job["tools"].dump(), .now = now};
  for (const Json& message : job["messages"]) {
    chat.messages.push_back({message["role"], message["content"], message.dump()});
  }
  return parsed.Render(chat);
}

}  // namespace

int main() {
  std::tm now{};
  now.tm_year = 124;
  now.tm_mday = 5;
  now.tm_hour = 7;
  now.tm_min = 8;
  now.tm_sec = 9;
  now.tm_wday = 5;
  now.tm_yday = 4;
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    const Json job = Json::Parse(line);
    const std::string& source = job["template"].text();
    const Result<Text> text = job.contains("messages") ? RenderChat(source, job, now)
                                                       : RenderVariables(source, job["data"], now);
    Json reply;
    if (text.ok()) {
      reply["text"] = text->bytes();
    } else {
      reply["error"] = text.error().message;
    }
    std::cout << reply.dump() << "\n";
  }
  return 0;
}
