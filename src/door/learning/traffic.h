#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "core/engine/engine.h"
#include "door/learning/capture_file.h"

namespace foretoken {

/// What is learned from, and how much of it.
struct TrafficLimits {
  std::size_t kept_bytes = 0;  ///< The most bytes of captures on disk; older ones go.
  std::size_t file_bytes = 0;  ///< The most bytes of one capture.
  /// The most bytes of texts that are not written yet; more are left out.
  std::size_t waiting_bytes = 0;
  std::int64_t flush_ns = 0;  ///< A text is on disk after so long, however small its file.
  std::int64_t retry_ns = 5'000'000'000;  ///< From a failure to the next try to write.
  int held_back_every = 8;                ///< One of so many texts is no capture but held back.
  /// How many texts that are held back, the last ones, are in memory.
  int held_back_most = 32;
};

/// A text with the states of all of its tokens but the last.
struct StatedText {
  std::vector<Token> tokens;
  int prompt_tokens = 0;
  SamplingParams sampling;  ///< Without a constraint.
  bool constrained = false;
  std::vector<BFloat16> states;  ///< [tokens - 1, width]
};

/// What traffic has left behind so far.
struct TrafficCounts {
  std::int64_t captured = 0;   ///< Texts of this process on disk.
  std::int64_t tokens = 0;     ///< Tokens of the captured texts.
  std::int64_t held_back = 0;  ///< Texts, since the beginning.
  std::int64_t left_out = 0;   ///< Texts for which there was no room while they waited.
  std::string failure;         ///< Why captures cannot be written now; empty: they can.
};

/// Takes the texts that an engine decodes: most are written as captures (docs/look_up/formats.md),
/// by a thread of low priority; some are held back, to judge drafts by that were trained on the
/// others. Where captures cannot be written (a full disk) that is tried again and again, and texts
/// wait as long as there is room for them. Thread-safe.
class Traffic {
 public:
  /// `shape` is that of the engine's taps, of which the last is the final state; `tokenizer` the
  /// fingerprint of the target's. `log` is told when captures cannot be written, and when they can
  /// again.
  static Result<std::unique_ptr<Traffic>> Begin(std::filesystem::path folder, const TapShape& shape,
                                                std::string tokenizer, const TrafficLimits& limits,
                                                LogSink log = {});
  ~Traffic();

  /// Copies the text.
  void Take(const DecodedText& text);

  /// The texts held back, the oldest first. Of those without a constraint.
  std::vector<std::shared_ptr<const StatedText>> HeldBack() const;
  TrafficCounts counts() const;

 private:
  Traffic(CaptureWriter writer, const TapShape& shape, const TrafficLimits& limits, LogSink log);
  void Write();
  // All under the mutex, which they give up while they wait or write.
  void Await(std::unique_lock<std::mutex>* lock);
  Status WriteNext(std::unique_lock<std::mutex>* lock);
  void Report(const Status& written);

  const TapShape shape_;
  const TrafficLimits limits_;
  const LogSink log_;
  CaptureWriter writer_;  // The thread's only.
  // When the writer's file is to be written, however small; the thread's only.
  std::int64_t flush_at_ns_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<const StatedText>> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::deque<std::shared_ptr<const StatedText>> held_back_;
  std::int64_t texts_ = 0;
  TrafficCounts counts_;
  bool stop_ = false;
  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace foretoken
