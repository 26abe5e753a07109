#pragma once

#include <algorithm>
#include <cstdint>

namespace foretoken {

/// When a lost speculator is started again: at once, and if that one is lost soon, too, after a
/// pause that doubles each time, so that one which always fails costs little and is still tried.
/// One that has run for a while has proven itself: its loss is a first one again.
class RestartSchedule {
 public:
  static constexpr std::int64_t kProvenNs = 600'000'000'000;
  static constexpr std::int64_t kFirstPauseNs = 1'000'000'000;
  static constexpr std::int64_t kLongestPauseNs = 300'000'000'000;

  /// It was lost, or could not be started.
  void Lost(std::int64_t now_ns) {
    if (now_ns - started_ns_ >= kProvenNs) pause_ns_ = 0;
    due_ns_ = now_ns + pause_ns_;
  }
  /// Whether to start it, where it is lost.
  bool Due(std::int64_t now_ns) const { return now_ns >= due_ns_; }
  /// It is being started.
  void Started(std::int64_t now_ns) {
    started_ns_ = now_ns;
    pause_ns_ = std::clamp(2 * pause_ns_, kFirstPauseNs, kLongestPauseNs);
  }
  /// From a loss to the next start.
  std::int64_t pause_ns() const { return pause_ns_; }

 private:
  std::int64_t started_ns_ = -kProvenNs;  // What the engine began with is taken as proven.
  std::int64_t due_ns_ = 0;
  std::int64_t pause_ns_ = 0;
};

}  // namespace foretoken
