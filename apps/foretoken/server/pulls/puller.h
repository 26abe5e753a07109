#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"

namespace foretoken::server {

/// What whoever fetches a model asks, and tells. Neither is null.
struct PullHooks {
  std::function<bool()> cancelled;
  /// Bytes that are there, and of how many; both 0 while that is not known.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress;
};
/// Fetches a model by its name, and has it served under that from then on. kCancelled where the
/// hooks said so.
using Pull = std::function<Status(const std::string& name, const PullHooks& hooks)>;

/// Who waits for a model. All are called on the puller's thread.
struct PullListener {
  std::function<bool()> gone;                                           ///< Nobody waits any more.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress;  ///< Now and then.
  std::function<void(const Status& status)> done;                       ///< Once, at the end.
};

/// Fetches models for clients, one at a time, on a thread of its own. Thread-safe.
class Puller {
 public:
  /// `pull` null: nothing may be fetched. `most_bytes`: a model that has more is not.
  Puller(Pull pull, std::uint64_t most_bytes) : pull_(std::move(pull)), most_bytes_(most_bytes) {}
  /// Ends what is under way.
  ~Puller();

  bool may_pull() const { return pull_ != nullptr; }
  /// Begins to fetch; false, telling nobody, where another model is being fetched.
  bool Begin(std::string name, PullListener listener);
  /// Ends what is under way; nothing begins any more.
  void Stop();

 private:
  void Run(const std::string& name, const PullListener& listener);

  const Pull pull_;
  const std::uint64_t most_bytes_;
  std::atomic<bool> busy_ = false;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::thread thread_;  // The latest one's; it has ended, or is about to, where none is busy.
};

}  // namespace foretoken::server
