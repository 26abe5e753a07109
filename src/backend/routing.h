#pragma once

#include <cmath>
#include <cstdint>
#include <span>

namespace foretoken {

/// The indices of the largest `scores`, as many as `largest` has room for: the largest first, equal
/// ones by lower index, those that are no number last.
inline void ChooseLargest(std::span<const float> scores, std::span<std::int32_t> largest) {
  const auto above = [&](std::int32_t a, std::int32_t b) {
    const float score = scores[static_cast<std::size_t>(a)];
    const float other = scores[static_cast<std::size_t>(b)];
    return score > other || (std::isnan(other) && !std::isnan(score));
  };
  std::size_t count = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(scores.size()); ++i) {
    if (count == largest.size()) {
      if (!above(i, largest[count - 1])) continue;
      --count;
    }
    std::size_t at = count++;
    for (; at > 0 && above(i, largest[at - 1]); --at) largest[at] = largest[at - 1];
    largest[at] = i;
  }
}

}  // namespace foretoken
