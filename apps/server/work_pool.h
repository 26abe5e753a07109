#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "base/result.h"

namespace foretoken::server {

/// A few threads for what would hold up the HTTP server's own: reading and tokenising requests.
class WorkPool {
 public:
  static Result<std::unique_ptr<WorkPool>> Start(int threads, int most_waiting);
  /// Finishes what was taken, then joins.
  ~WorkPool();

  /// Runs `work` on one of the threads; false where too much waits already. Any thread. What it
  /// throws (memory that cannot be had) is told to `failed`, on the same thread.
  bool Run(std::function<void()> work, std::function<void()> failed);

 private:
  struct Threads;
  explicit WorkPool(int most_waiting);

  const int most_waiting_;
  std::atomic<int> waiting_ = 0;
  std::unique_ptr<Threads> threads_;
};

}  // namespace foretoken::server
