#include "json/read_json_object.h"

#include <fmt/core.h>

#include <string>

#include "base/files/read_text.h"

namespace foretoken {
namespace {

// The text with quotes around what Python writes for numbers that JSON has not: "time_step_limit":
// [0.0, Infinity].
std::string QuoteOtherNumbers(std::string_view text) {
  std::string quoted;
  bool in_string = false;
  while (!text.empty()) {
    std::string_view next = text.substr(0, 1);
    if (in_string && next == "\\") next = text.substr(0, 2);
    if (next == "\"") in_string = !in_string;
    for (const std::string_view number : {"-Infinity", "Infinity", "NaN"}) {
      if (!in_string && text.starts_with(number)) next = number;
    }
    const bool number = next.size() > 2;
    quoted += number ? fmt::format("\"{}\"", next) : std::string(next);
    text.remove_prefix(next.size());
  }
  return quoted;
}

}  // namespace

Result<Json> ParseJsonObject(std::string_view text, std::string_view where) {
  auto json = Json::Parse(text);
  if (json.is_discarded()) json = Json::Parse(QuoteOtherNumbers(text));
  // The parser takes a NUL for the end of the text.
  if (!json.is_object() || text.find('\0') != std::string_view::npos) {
    return Invalid("{}: is not a JSON object", where);
  }
  return json;
}

Result<Json> ReadJsonObject(const std::filesystem::path& path, std::string_view usual) {
  constexpr std::size_t kMaxBytes = 1 << 20;
  const Result<std::string> text = ReadText(path, kMaxBytes);
  if (!text.ok()) {
    return Invalid("{}: {}; {}", path.string(), text.error().message, usual);
  }
  return ParseJsonObject(*text, path.string());
}

}  // namespace foretoken
