#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

/// Splits server-sent events out of a byte stream that arrives in arbitrary pieces.
class SseReader {
 public:
  /// Calls `on_data` with the data of every event that `bytes` completes. Lines may end in LF or
  /// CRLF; comments and fields other than `data` are skipped, data lines of one event joined.
  void Feed(std::string_view bytes, const std::function<void(std::string_view)>& on_data);

 private:
  std::string rest_;                 // Of bytes, after the last whole line.
  std::optional<std::string> data_;  // Of the event that has begun.
};

/// What a streamed reply of a chat or text completion brought. Counts are the server's.
struct StreamedReply {
  std::vector<std::int64_t> chunk_ns;  ///< Arrivals of chunks with text.
  std::string text;
  std::optional<int> prompt_tokens;
  std::optional<int> counted_tokens;
  std::optional<int> drafted;  ///< Proposed tokens, where the server speculates.
  std::optional<int> draft_accepted;
  bool done = false;      ///< [DONE] was seen, after which a reply is whole.
  bool finished = false;  ///< Some choice has ended.
  std::string failure;    ///< What the server said was wrong, or made an event unreadable.

  /// Reads the data of one event that arrived at `now_ns`.
  void OnEvent(std::string_view data, std::int64_t now_ns);
};

}  // namespace foretoken
