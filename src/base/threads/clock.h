#pragma once

#include <chrono>
#include <cstdint>

namespace foretoken {

/// Monotonic time in nanoseconds.
inline std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace foretoken
