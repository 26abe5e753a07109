#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http/http_message.h"

namespace foretoken::server {

/// One key and who brings it.
struct ApiKey {
  std::string name;    ///< For logs and limits; never the key itself.
  std::string digest;  ///< SHA-256 of the key, in hexadecimal digits.
};

/// The keys that a server asks for. Keys are compared as they were typed, byte by byte.
class ApiKeys {
 public:
  ApiKeys() = default;

  /// An error where the key is empty or has a byte that a header cannot carry.
  static Result<ApiKey> Make(std::string name, const std::string& key);
  /// One key on each line of a file, or `NAME KEY`; empty lines and those that begin with # are
  /// skipped. An error that names the line.
  static Result<ApiKeys> Read(const std::string& path);

  void Add(ApiKey key) { keys_.push_back(std::move(key)); }
  bool empty() const { return keys_.empty(); }

  /// The key that a request brings, as `Authorization: Bearer KEY` or `x-api-key: KEY`; null where
  /// it brings none of these. Takes the same time wherever keys differ.
  const ApiKey* Find(const HttpHead& head) const;

 private:
  std::vector<ApiKey> keys_;
};

}  // namespace foretoken::server
