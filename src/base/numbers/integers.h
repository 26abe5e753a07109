#pragma once

#include <concepts>
#include <cstddef>

namespace foretoken {

// Conversions between integers, for arithmetic that would else be hidden by its casts. They are
// always inlined: kernels use them, which are compiled once for each instruction set.

/// A count or an index, which is not negative, as the type of sizes.
[[gnu::always_inline]] constexpr std::size_t Size(std::integral auto n) {
  return static_cast<std::size_t>(n);
}

/// A count that is known to be small as an int.
[[gnu::always_inline]] constexpr int Int(std::integral auto n) { return static_cast<int>(n); }

}  // namespace foretoken
