#pragma once

#include <algorithm>
#include <cstdint>

#include "base/threads/thread_pool.h"

namespace foretoken::cpu {

/// Work worth sharing among threads, in elements touched: a few microseconds, against the one that
/// waking spinning workers costs.
inline constexpr std::int64_t kWorthSharing = 200'000;

/// Pieces of a share at most. Workers that run alike fast have alike much to do in any number; one
/// that is slower leaves pieces to others.
inline constexpr std::int64_t kPieces = 8;

/// Calls work(worker, begin, end) for pieces of [0, count), in parallel if it is worth it. `pool`
/// may be null.
template <typename Work>
void ShareWork(ThreadPool* pool, std::int64_t count, std::int64_t cost, const Work& work) {
  if (pool == nullptr || pool->size() == 1 || count < 2 || cost < kWorthSharing) {
    work(0, std::int64_t{0}, count);
    return;
  }
  const std::int64_t pieces = pool->size() * std::clamp(cost / (2 * kWorthSharing * pool->size()),
                                                        std::int64_t{1}, kPieces);
  pool->Share(count, (count + pieces - 1) / pieces, work);
}

}  // namespace foretoken::cpu
