#pragma once

#include <bit>
#include <cstdint>

namespace foretoken {

/// Bits of a bfloat16 number: the upper half of a float32.
using BFloat16 = std::uint16_t;

inline float BFloat16ToFloat(BFloat16 bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Rounds to nearest even; a NaN stays a NaN.
inline BFloat16 FloatToBFloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<BFloat16>((bits >> 16) | 0x40U);
  return static_cast<BFloat16>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

/// IEEE half precision to float, exact.
float HalfToFloat(std::uint16_t bits);

/// Rounds to nearest even; what is too large becomes infinite, a NaN stays a NaN.
std::uint16_t FloatToHalf(float value);

}  // namespace foretoken
