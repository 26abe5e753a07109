// Renders templates for tests: each line of the standard input is a JSON object with a `template`
// and the variables it is rendered with, `data`; for each a line goes out with `text` or `error`.
// strftime_now() knows one moment, Friday the 5th of January 2024, 07:08:09.
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "jinja/template.h"

int main() {
  using foretoken::Result;
  using Json = nlohmann::ordered_json;
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
    const Json job = Json::parse(line);
    Json reply;
    const auto parsed =
        foretoken::jinja::Template::Parse(job["template"].get_ref<const std::string&>());
    if (!parsed.ok()) {
      reply["error"] = parsed.error().message;
    } else {
      const foretoken::jinja::Inputs inputs{.data = job["data"], .now = &now};
      const Result<foretoken::jinja::Text> text = parsed->Render(inputs);
      if (text.ok()) {
        reply["text"] = text->bytes();
      } else {
        reply["error"] = text.error().message;
      }
    }
    std::cout << reply.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  }
  return 0;
}
