#include "text/hub/hub_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>

#include "base/files/read_file.h"
#include "base/text/parse_number.h"
#include "base/text/printable.h"
#include "base/text/text.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPublicHub = "https://huggingface.co";

// Variables as `environ` has them.
class Variables {
 public:
  explicit Variables(const char* const* entries) : entries_(entries) {}

  // The first of these that says anything; else empty.
  std::string Get(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      for (const char* const* at = entries_; *at != nullptr; ++at) {
        const std::string_view entry = *at;
        const bool found =
            entry.size() > name.size() + 1 && entry.starts_with(name) && entry[name.size()] == '=';
        if (found) return std::string(entry.substr(name.size() + 1));
      }
    }
    return {};
  }

  bool Flag(std::initializer_list<std::string_view> names) const {
    std::string value = Get(names);
    std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::toupper(c); });
    return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
  }

  // A path, which may begin with "~/"; empty where nothing is said.
  fs::path Path(std::initializer_list<std::string_view> names) const {
    const std::string path = Get(names);
    if (!path.starts_with("~/")) return path;
    return fs::path(Get({"HOME"})) / path.substr(2);
  }

 private:
  const char* const* entries_;
};

Result<std::string> ReadEndpoint(const Variables& variables) {
  std::string endpoint = variables.Get({"HF_ENDPOINT"});
  if (endpoint.empty()) return std::string(kPublicHub);
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const std::size_t host = endpoint.find("://");
  const bool known = endpoint.starts_with("https://") || endpoint.starts_with("http://");
  const bool clean = endpoint.find_first_of(" \t\r\n?#@") == std::string::npos;
  if (!known || !clean || endpoint.size() <= host + 3) {
    return Invalid(
        "HF_ENDPOINT is '{}', but must be the address of a hub, like https://hub.example.com",
        Printable(endpoint));
  }
  return endpoint;
}

Result<std::string> CleanToken(std::string_view text, std::string_view whence) {
  const std::string_view token = Trim(text);
  if (std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; })) {
    return std::string(token);
  }
  return Invalid("the token in {} has spaces or other characters within that no token has", whence);
}

Result<std::string> ReadToken(const Variables& variables, const fs::path& home) {
  constexpr std::size_t kMostBytes = 4096;
  if (variables.Flag({"HF_HUB_DISABLE_IMPLICIT_TOKEN"})) return std::string();
  const std::string given = variables.Get({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"});
  if (!given.empty()) return CleanToken(given, "HF_TOKEN");
  const fs::path named = variables.Path({"HF_TOKEN_PATH"});
  const fs::path path = named.empty() ? home / "token" : named;
  const Result<std::string> text = ReadFile(path, kMostBytes);
  if (!text.ok()) return std::string();  // Nobody has logged in.
  return CleanToken(*text, fmt::format("'{}'", path.string()));
}

// Empty where no variable says where.
fs::path ReadHome(const Variables& variables) {
  const fs::path named = variables.Path({"HF_HOME"});
  if (!named.empty()) return named;
  const fs::path caches = variables.Path({"XDG_CACHE_HOME"});
  if (!caches.empty()) return caches / "huggingface";
  const fs::path home = variables.Path({"HOME"});
  return home.empty() ? fs::path() : home / ".cache" / "huggingface";
}

}  // namespace

Result<HubSettings> ReadHubSettings(const char* const* entries) {
  const Variables variables(entries);
  HubSettings settings;
  FT_ASSIGN_OR_RETURN(settings.endpoint, ReadEndpoint(variables));
  const fs::path home = ReadHome(variables);
  settings.cache = variables.Path({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  if (settings.cache.empty() && !home.empty()) settings.cache = home / "hub";
  if (settings.cache.empty()) {
    return InvalidInput(
        "there is no place for models: none of HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME and HOME is "
        "set");
  }
  FT_ASSIGN_OR_RETURN(settings.token, ReadToken(variables, home));
  settings.offline = variables.Flag({"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"});
  const std::string timeout = variables.Get({"HF_HUB_DOWNLOAD_TIMEOUT"});
  int seconds = 0;
  if (!timeout.empty() && (!ParseNumber(timeout, &seconds) || seconds < 1 || seconds > 86'400)) {
    return Invalid(
        "HF_HUB_DOWNLOAD_TIMEOUT is '{}', but must be a number of seconds from 1 to 86400",
        Printable(timeout));
  }
  if (!timeout.empty()) settings.timeout = std::chrono::seconds(seconds);
  return settings;
}

}  // namespace foretoken
