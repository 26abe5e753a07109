#include "json/read_json_object.h"

#include <fmt/core.h>

#include <string>

#include "base/read_file.h"

namespace foretoken {

Result<nlohmann::json> ReadJsonObject(const std::filesystem::path& path, std::string_view usual) {
  constexpr std::size_t kMaxBytes = 1 << 20;
  const Result<std::string> text = ReadFile(path, kMaxBytes);
  if (!text.ok()) {
    return InvalidInput(fmt::format("{}: {}; {}", path.string(), text.error().message, usual));
  }
  auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return InvalidInput(path.string() + ": not a JSON object");
  return json;
}

}  // namespace foretoken
