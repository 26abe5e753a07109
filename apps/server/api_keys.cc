#include "server/api_keys.h"

#include <fmt/core.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/read_file.h"
#include "base/sha256.h"

namespace foretoken::server {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

// The key that a request brings; empty: none.
std::string_view KeyOf(const HttpHead& head) {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view header = head.Field("Authorization");
  if (header.starts_with(kScheme)) return header.substr(kScheme.size());
  return head.Field("x-api-key");
}

}  // namespace

Result<ApiKey> ApiKeys::Make(std::string name, const std::string& key) {
  const bool printable =
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (key.empty() || !printable) {
    return InvalidInput(
        "an API key is one or more ASCII characters without spaces; leave the option out to serve "
        "without a key");
  }
  return ApiKey{.name = std::move(name), .digest = Sha256Hex(key)};
}

Result<ApiKeys> ApiKeys::Read(const std::string& path) {
  const Result<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) {
    return InvalidInput(
        fmt::format("cannot read an API key from '{}': {}", path, text.error().message));
  }
  ApiKeys keys;
  std::istringstream lines(*text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::string name;
    std::string key;
    std::string more;
    if (!(words >> name) || name.starts_with('#')) continue;
    if (!(words >> key)) key = std::exchange(name, fmt::format("key {}", keys.keys_.size() + 1));
    if (words >> more) {
      return InvalidInput(
          fmt::format("line {} of '{}' has more than a name and a key; one key goes on each line",
                      number, path));
    }
    Result<ApiKey> made = Make(name, key);
    if (!made.ok()) {
      return InvalidInput(fmt::format("line {} of '{}': {}", number, path, made.error().message));
    }
    keys.Add(std::move(*made));
  }
  if (keys.empty()) return InvalidInput(fmt::format("there is no API key in '{}'", path));
  return keys;
}

const ApiKey* ApiKeys::Find(const HttpHead& head) const {
  const std::string_view brought = KeyOf(head);
  if (brought.empty()) return nullptr;
  const std::string digest = Sha256Hex(std::string(brought));
  const ApiKey* found = nullptr;
  for (const ApiKey& key : keys_) {
    if (CRYPTO_memcmp(digest.data(), key.digest.data(), digest.size()) == 0) found = &key;
  }
  return found;
}

}  // namespace foretoken::server
