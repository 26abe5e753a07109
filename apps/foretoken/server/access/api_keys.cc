#include "apps/foretoken/server/access/api_keys.h"

#include <fmt/core.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <sstream>
#include <utility>

#include "base/files/read_text.h"
#include "base/numbers/sha256.h"
#include "base/text/parse_number.h"
#include "base/text/utf8.h"
#include "foretoken/datastore.h"

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

// What keys of that name share and no others do.
std::uint64_t ScopeOf(const std::string& name) {
  constexpr std::size_t kDigits = 16;
  return std::stoull(Sha256Hex(name).substr(0, kDigits), nullptr, 16) | 1;  // 0 is nobody's.
}

Status ReadNamespaces(std::string_view list, std::vector<std::string>* namespaces) {
  namespaces->clear();
  std::istringstream names{std::string(list)};
  for (std::string name; std::getline(names, name, ',');) {
    FT_RETURN_IF_ERROR(DatastoreFolder::CheckNamespace(name));
    namespaces->push_back(name);
  }
  if (!namespaces->empty() && !list.ends_with(',')) return {};
  return InvalidInput(
      "'namespaces=' goes on with names that commas separate, as in namespaces=alice,team");
}

Status ReadLimit(std::string_view text, std::optional<int>* limit) {
  if (ParseNumber(text, &limit->emplace()) && **limit > 0) return {};
  return InvalidInput("'limit=' goes on with a number of sequences, from 1 on");
}

// A line's words: [NAME] KEY [namespaces=a,b] [limit=N].
Result<ApiKey> ReadKey(std::vector<std::string> words, std::size_t number) {
  constexpr std::string_view kNamespaces = "namespaces=";
  constexpr std::string_view kLimit = "limit=";
  const auto is_setting = [&](std::string_view word) {
    return word.starts_with(kNamespaces) || word.starts_with(kLimit);
  };
  const bool named = words.size() > 1 && !is_setting(words[1]);
  FT_ASSIGN_OR_RETURN(ApiKey key, named ? ApiKeys::Make(words[0], words[1])
                                        : ApiKeys::Make(fmt::format("key-{}", number), words[0]));
  for (std::string_view word : std::span(words).subspan(named ? 2 : 1)) {
    if (word.starts_with(kNamespaces)) {
      FT_RETURN_IF_ERROR(ReadNamespaces(word.substr(kNamespaces.size()), &key.namespaces));
    } else if (word.starts_with(kLimit)) {
      FT_RETURN_IF_ERROR(ReadLimit(word.substr(kLimit.size()), &key.limit));
    } else {
      return InvalidInput(
          "has more than a name and a key, which only 'namespaces=a,b' and 'limit=N' may follow; "
          "one key goes on each line");
    }
  }
  const Status own = DatastoreFolder::CheckNamespace(key.namespaces.front());
  if (own.ok()) return key;
  return Invalid(
      "no namespace can be called '{}' (1 to 64 letters, digits, '-' and '_', and not 'shared'): "
      "say with namespaces=a,b which are this key's",
      Shortened(key.name, 40));
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
  ApiKey made{.name = std::move(name), .digest = Sha256Hex(key)};
  made.namespaces = {made.name};
  made.prefix_scope = ScopeOf(made.name);
  return made;
}

Result<ApiKeys> ApiKeys::Read(const std::string& path) {
  const Result<std::string> text = ReadText(path, kMaxFileBytes);
  if (!text.ok()) {
    return Invalid("cannot read an API key from '{}': {}", path, text.error().message);
  }
  ApiKeys keys;
  std::istringstream lines(*text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream split(line);
    std::vector<std::string> words{std::istream_iterator<std::string>(split), {}};
    if (words.empty() || words.front().starts_with('#')) continue;
    const Result<ApiKey> made = ReadKey(std::move(words), keys.keys_.size() + 1);
    if (!made.ok()) {
      return Invalid("line {} of '{}': {}", number, path, made.error().message);
    }
    keys.Add(*made);
  }
  if (keys.empty()) return Invalid("there is no API key in '{}'", path);
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
