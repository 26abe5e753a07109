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
  void TakeLine(std::string_view line, const std::function<void(std::string_view)>& on_data);

  std::string line_;
  std::string data_;
  bool has_data_ = false;
};

/// What a streamed reply of a chat or text completion says, event by event.
class CompletionStream {
 public:
  /// Reads the data of one event that arrived at `now_ns`.
  void OnEvent(std::string_view data, std::int64_t now_ns);

  /// Whether [DONE] was seen, after which a reply is whole.
  bool done() const { return done_; }
  /// Whether some choice has ended.
  bool finished() const { return finished_; }
  /// What the server said was wrong, or what made an event unreadable; empty while all is well.
  const std::string& error() const { return error_; }

  int chunks() const { return static_cast<int>(chunk_ns_.size()); }
  /// When each chunk with text arrived.
  const std::vector<std::int64_t>& chunk_ns() const { return chunk_ns_; }
  const std::string& text() const { return text_; }

  /// From `usage`, where the server sends it.
  std::optional<int> prompt_tokens() const { return prompt_tokens_; }
  std::optional<int> output_tokens() const { return output_tokens_; }
  /// Proposed and accepted tokens, from `usage` or `timings`, where the server speculates.
  std::optional<int> drafted() const { return drafted_; }
  std::optional<int> draft_accepted() const { return draft_accepted_; }

 private:
  std::vector<std::int64_t> chunk_ns_;
  std::string text_;
  std::string error_;
  bool done_ = false;
  bool finished_ = false;
  std::optional<int> prompt_tokens_;
  std::optional<int> output_tokens_;
  std::optional<int> drafted_;
  std::optional<int> draft_accepted_;
};

}  // namespace foretoken
