#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "base/cores.h"

namespace foretoken {

/// The threads of one CPU device, one pinned to each core of a `CoreSet`. The thread that calls
/// `Run` is worker 0 and must always be the same one while work runs; `Adopt` pins it.
///
/// Workers spin for a bounded time between two calls of `Run`, then sleep. Not thread-safe: one
/// owner thread drives a pool. With one core `Run` is a plain call.
class ThreadPool {
 public:
  /// Throws std::system_error where the system starts too few threads.
  explicit ThreadPool(CoreSet cores);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(cores_.size()); }
  const CoreSet& cores() const { return cores_; }

  /// Pins the calling thread to the pool's first core; the owner calls it once before `Run`.
  void Adopt();

  /// Calls `work(worker, size())` on every worker at once and returns when all are done.
  template <typename Work>
  void Run(const Work& work) {
    if (size() == 1) {
      work(0, 1);
      return;
    }
    Dispatch([](const void* context, int worker,
                int workers) { (*static_cast<const Work*>(context))(worker, workers); },
             &work);
  }

 private:
  using Thunk = void (*)(const void* context, int worker, int workers);
  struct Shared;

  void Dispatch(Thunk thunk, const void* context);
  void WorkerLoop(int worker);
  void Stop();

  CoreSet cores_;
  std::unique_ptr<Shared> shared_;
  std::vector<std::thread> threads_;
};

}  // namespace foretoken
