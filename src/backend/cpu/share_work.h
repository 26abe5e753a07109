#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace foretoken::cpu {

/// Work worth sharing among threads, in elements touched: a few microseconds, against the one that
/// waking spinning workers costs.
inline constexpr std::int64_t kWorthSharing = 200'000;

/// Calls work(worker, begin, end) for shares of [0, count), in parallel if it is worth it. `pool`
/// may be null.
template <typename Work>
void ShareWork(ThreadPool* pool, std::int64_t count, std::int64_t cost, const Work& work) {
  if (pool == nullptr || pool->size() == 1 || count < 2 || cost < kWorthSharing) {
    work(0, std::int64_t{0}, count);
    return;
  }
  pool->Run([&](int worker, int workers) {
    const std::int64_t begin = count * worker / workers;
    const std::int64_t end = count * (worker + 1) / workers;
    if (begin < end) work(worker, begin, end);
  });
}

}  // namespace foretoken::cpu
