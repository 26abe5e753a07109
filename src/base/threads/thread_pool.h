#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/threads/cores.h"

namespace foretoken {

/// The threads of one CPU device, one pinned to each core of a `CoreSet`. The thread that calls
/// `Run` and `Share` is worker 0 and must always be the same one while work runs; `Adopt` pins it.
///
/// Workers spin for a bounded time between two calls, then sleep. Not thread-safe: one owner thread
/// drives a pool. With one core both are plain calls.
class ThreadPool {
 public:
  /// Throws std::system_error where the system starts too few threads.
  explicit ThreadPool(CoreSet cores);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return cores_.size(); }
  const CoreSet& cores() const { return cores_; }

  /// Pins the calling thread to the pool's first core; the owner calls it once before `Run`.
  void Adopt();

  /// For how long its workers, the owner not among them, had work and no core, all together, since
  /// the pool began: other programs had their cores. What a worker waits for now counts once it
  /// runs again. Nanoseconds; any thread.
  std::int64_t waited_ns() const;
  /// The owner changes cores with the worker that has waited least for its own since the last such
  /// change: no call begins without the owner, whatever the others could do. With one core nothing
  /// happens.
  void MoveOwner();

  /// Calls `work(worker, size())` on every worker at once and returns when all are done.
  template <typename Work>
  void Run(const Work& work) {
    if (size() == 1) {
      work(0, 1);
      return;
    }
    RunAll(
        [](const void* context, int worker, std::int64_t, std::int64_t workers) {
          (*static_cast<const Work*>(context))(worker, static_cast<int>(workers));
        },
        &work);
  }

  /// Calls `work(worker, begin, end)` for pieces of [0, count) that together are all of it, each of
  /// at most `piece`, and returns when all are done. A worker begins with its own share and then
  /// helps others with theirs, so that one whose core is busy with another program holds up no more
  /// than the piece that it has begun. `worker` may get several pieces, one after the other, and is
  /// never in two at once.
  template <typename Work>
  void Share(std::int64_t count, std::int64_t piece, const Work& work) {
    if (size() == 1) {
      work(0, std::int64_t{0}, count);
      return;
    }
    ShareOut(
        count, piece,
        [](const void* context, int worker, std::int64_t begin, std::int64_t end) {
          (*static_cast<const Work*>(context))(worker, begin, end);
        },
        &work);
  }

 private:
  // For Run: no begin, and the number of workers as the end.
  using Thunk = void (*)(const void* context, int worker, std::int64_t begin, std::int64_t end);
  struct Shared;
  class Worker;

  void RunAll(Thunk thunk, const void* context);
  void ShareOut(std::int64_t count, std::int64_t piece, Thunk thunk, const void* context);
  template <typename Help>
  void Await(std::int64_t parts, const Help& help);
  void Stop();

  CoreSet cores_;
  std::vector<int> core_of_;               // By worker.
  std::vector<std::int64_t> seen_waited_;  // Waits by worker, up to the owner's last move.
  std::unique_ptr<Shared> shared_;
  std::int64_t expected_ = 0;  // What workers will have finished once the call is over.
  std::vector<std::thread> threads_;
};

}  // namespace foretoken
