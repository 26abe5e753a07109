#pragma once

#include <cstdint>
#include <ctime>

#include "base/threads/clock.h"

namespace foretoken {

/// For how long the calling thread has run, in nanoseconds. A call costs some 0.3 us.
inline std::int64_t ThreadNs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// How long a thread that wants to run has not: another program had its core, or the system kept
/// it waiting. Belongs to the thread.
class WaitClock {
 public:
  WaitClock() { Restart(); }
  /// Counts from now on: after a sleep.
  void Restart() {
    wall_ns_ = NowNs();
    ran_ns_ = ThreadNs();
  }
  /// Nanoseconds since the last call or restart.
  std::int64_t Take() {
    const std::int64_t wall_ns = wall_ns_;
    const std::int64_t ran_ns = ran_ns_;
    Restart();
    return (wall_ns_ - wall_ns) - (ran_ns_ - ran_ns);
  }

 private:
  std::int64_t wall_ns_ = 0;
  std::int64_t ran_ns_ = 0;
};

}  // namespace foretoken
