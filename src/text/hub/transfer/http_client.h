#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/hub/hub_settings.h"

namespace foretoken {

/// Bytes of a file: from `begin` up to `end`.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// A body to be fetched by GET, in as many tries as it takes; or only asked about, by HEAD.
struct Fetch {
  std::string url;
  /// Asks what the body is. Nothing of it comes, so `take` may be null.
  bool asks_only = false;
  /// The size of the whole body, where it is known; another one is an error.
  std::optional<std::uint64_t> size;
  /// Asked before each try: what is wanted now; none: the whole body, from its first byte again.
  /// Its error ends everything.
  std::function<Result<std::optional<ByteRange>>()> begin;
  /// Takes what comes, in order and never more than is wanted. Its error ends everything.
  std::function<Status(std::string_view)> take;
  /// How often it is tried without a byte coming.
  int tries = 6;

  // What the server said, of the last try.
  int status = 0;             ///< The HTTP status; 0: there was no answer.
  std::string error_code;     ///< Why it refused, in the Hub's words: "GatedRepo", say.
  std::string error_message;  ///< A sentence of its own.
  /// What it said of the body that was asked about: its name by content, without quotes, and its
  /// size. Those of a large file, which lies elsewhere, are told before it redirects.
  std::string etag;
  std::optional<std::uint64_t> told_size;
  /// It sent the whole body where a part was asked for, which was not taken.
  bool ignores_ranges = false;
};

/// Requests over HTTP, patiently: connections that fail, are cut or stand still, and statuses 408,
/// 429 and 5xx, are tried again from where they were, after a wait (Retry-After where it is said).
/// Redirections are followed; the token stays with the host that it is for.
class HttpClient {
 public:
  /// `cancelled` is asked often; both must outlive this.
  HttpClient(const HubSettings& settings, const std::function<bool()>& cancelled);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Fetches them all, up to `settings.connections` at once. The first that cannot be had ends it:
  /// kUnavailable where it may work later.
  Status FetchAll(std::span<Fetch> fetches);

 private:
  const HubSettings& settings_;
  const std::function<bool()>& cancelled_;
};

/// A path with everything escaped but letters, digits, "-._~" and, where `slashes` stay, "/".
std::string EscapeUrl(std::string_view path, bool slashes = true);

}  // namespace foretoken
