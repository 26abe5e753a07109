#pragma once

#include <cstdint>

#include "base/threads/thread_pool.h"
#include "base/threads/wait_clock.h"

namespace foretoken {

/// For how long threads of a pool waited for their cores, in nanoseconds: its owner while a pass
/// ran, and its workers, all together, since the pass before.
struct CoreWaits {
  std::int64_t owner_ns = 0;
  std::int64_t workers_ns = 0;
};

/// Measures that. Belongs to the thread that owns the pool.
class PassWatch {
 public:
  /// Before a pass that may take about as long as `expected_ns`.
  void Begin(std::int64_t expected_ns);
  CoreWaits End(const ThreadPool& pool);

 private:
  WaitClock owner_;
  bool watches_owner_ = false;
  std::int64_t workers_ns_ = 0;  // ThreadPool::waited_ns when the pass before ended.
};

/// Whether passes are held up by other programs just now, so that how long they take says nothing
/// about what they computed.
class Disturbance {
 public:
  /// A pass that ended `now_ns` took `pass_ns`, and its threads waited so long for their cores.
  /// True where its time teaches nothing: they waited in it, or shortly before. Where it has been
  /// like that for most of a minute passes teach all the same: other programs are then a part of
  /// the machine.
  bool Observe(std::int64_t now_ns, std::int64_t pass_ns, const CoreWaits& waits);

 private:
  std::int64_t calm_from_ns_ = 0;
  double share_ = 0;  // How much of the time lately had disturbed passes.
};

/// Whether it is the owner of a pool whose core another program uses, more than the workers'.
class OwnersCore {
 public:
  /// A pass took so long on a pool of so many threads. True where the owner does better to change
  /// cores with a worker.
  bool Observe(std::int64_t pass_ns, const CoreWaits& waits, int threads);

 private:
  // Since the last judgement.
  std::int64_t passes_ns_ = 0;
  CoreWaits waits_;
};

}  // namespace foretoken
