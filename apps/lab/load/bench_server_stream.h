#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers/integers.h"

namespace foretoken {

/// Splits server-sent events out of a byte stream that arrives in arbitrary pieces.
class SseReader {
 public:
  /// Calls `on_data` with the data of every event that `bytes` completes. Lines may end in LF or
  /// CRLF; comments and fields other than `data` are skipped, data lines of one event joined.
  void Feed(std::string_view bytes, const std::function<void(std::string_view)>& on_data);

 private:
  std::string rest_;                 // The bytes after the last whole line.
  std::optional<std::string> data_;  // The data of the event that has begun.
};

/// What became of a request for a streamed completion. Times are NowNs(), counts the server's.
struct LoadRecord {
  std::int64_t start_ns = 0;  ///< Arrival, also where all connections were busy then.
  std::int64_t end_ns = 0;
  std::vector<std::int64_t> chunk_ns;  ///< Arrivals of chunks with text.
  std::string text;
  std::optional<int> prompt_tokens;
  std::optional<int> counted_tokens;
  std::optional<int> drafted;  ///< Proposed tokens, where the server speculates.
  std::optional<int> draft_accepted;
  bool done = false;      ///< [DONE] was seen, after which a reply is whole.
  bool finished = false;  ///< Some choice has ended.
  std::string error;  ///< "http 429", "connection", "timeout", "cut off" ...; empty: all went well.
  std::string message;  ///< What the error was in detail.

  /// Reads the data of one event that arrived at `now_ns`.
  void OnEvent(std::string_view data, std::int64_t now_ns);

  bool ok() const { return error.empty(); }
  /// Output tokens: the server's count, else one a chunk.
  int tokens() const { return counted_tokens.value_or(Int(chunk_ns.size())); }
  double ttft_ns() const { return static_cast<double>(chunk_ns.front() - start_ns); }
  /// Time per output token after the first; nothing for a single token.
  std::optional<double> tpot_ns() const;
};

}  // namespace foretoken
