#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/foretoken/server/http/http_message.h"
#include "base/result.h"

namespace foretoken::server {

/// One key, who brings it and what is theirs.
struct ApiKey {
  std::string name;    ///< For logs and limits; never the key itself.
  std::string digest;  ///< SHA-256 of the key, in hexadecimal digits.
  /// Namespaces of the datastore that its requests may name; the first is that of those that name
  /// none.
  std::vector<std::string> namespaces;
  std::optional<int> limit;  ///< Sequences under way at most; none: the server's share for one.
  std::uint64_t prefix_scope = 0;  ///< Request::prefix_scope: the same for keys of one name.
};

/// The keys that a server asks for. Keys are compared as they were typed, byte by byte.
class ApiKeys {
 public:
  ApiKeys() = default;

  /// A key that owns the namespace of its name. An error where it is empty or has a byte that a
  /// header cannot carry.
  static Result<ApiKey> Make(std::string name, const std::string& key);
  /// One key on each line of a file, or `NAME KEY`, either of which may go on with
  /// `namespaces=a,b` and `limit=N`; empty lines and those that begin with # are skipped. An error
  /// names the line.
  static Result<ApiKeys> Read(const std::string& path);

  void Add(ApiKey key) { keys_.push_back(std::move(key)); }
  const ApiKey& front() const { return keys_.front(); }
  bool empty() const { return keys_.empty(); }

  /// The key that a request brings, as `Authorization: Bearer KEY` or `x-api-key: KEY`; null where
  /// it brings none of these. Takes the same time wherever keys differ.
  const ApiKey* Find(const HttpHead& head) const;

 private:
  std::vector<ApiKey> keys_;
};

}  // namespace foretoken::server
