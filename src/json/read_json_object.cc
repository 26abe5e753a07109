#include "json/read_json_object.h"

#include <fmt/core.h>

#include <string>

#include "base/read_text.h"

namespace foretoken {

Result<nlohmann::json> ParseJsonObject(std::string_view text, std::string_view where) {
  auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  // The parser takes a NUL for the end of the text.
  if (!json.is_object() || text.find('\0') != std::string_view::npos) {
    return InvalidInput(fmt::format("{}: is not a JSON object", where));
  }
  return json;
}

Result<nlohmann::json> ReadJsonObject(const std::filesystem::path& path, std::string_view usual) {
  constexpr std::size_t kMaxBytes = 1 << 20;
  const Result<std::string> text = ReadText(path, kMaxBytes);
  if (!text.ok()) {
    return InvalidInput(fmt::format("{}: {}; {}", path.string(), text.error().message, usual));
  }
  return ParseJsonObject(*text, path.string());
}

}  // namespace foretoken
