#pragma once

// A block of 32 floats as integers of 8 or 16 bits and a scale (docs/develop/arithmetic.md,
// Inputs), in loops that compilers turn into vectors of any width, since no sum in them has an
// order. Include after a vec_*.h or a lanes_*.h.

#include "core/backend/cpu/quant/quant_kernels.h"

namespace foretoken::cpu::FT_ISA {
namespace {

// Bits of floats: of infinity, of the NaN that stands for all, of 2^-100, of 1.5 * 2^23.
constexpr std::uint32_t kInfinityBits = 0x7F800000;
constexpr std::uint32_t kNanBits = 0x7FC00000;
constexpr std::uint32_t kSmallestBits = 0x0D800000;
constexpr std::uint32_t kIntegersBegin = 0x4B400000;

FT_INLINE float FloatOf(std::uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

FT_INLINE std::uint32_t BitsOf(float value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}

constexpr int kLargest8 = 127;
constexpr int kLargest16 = 32767;

// Writes kInputBlock integers, none beyond +-kLargest, and returns their scale.
template <int kLargest, typename Integer>
FT_INLINE float QuantizeBlock(const float* x, Integer* values) {
  // The larger of two positive floats has the larger bits, and NaN has larger ones than infinity.
  std::uint32_t largest = 0;
  for (int j = 0; j < kInputBlock; ++j) {
    const std::uint32_t magnitude = BitsOf(x[j]) & 0x7FFFFFFF;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (largest >= kInfinityBits || largest < kSmallestBits) {
    for (int j = 0; j < kInputBlock; ++j) values[j] = 0;
    return FloatOf(largest >= kInfinityBits ? kNanBits : 0);
  }
  const float inverse = static_cast<float>(kLargest) / FloatOf(largest);
  // Adding 1.5 * 2^23 rounds to an integer, ties to even, in the low bits of the sum.
  for (int j = 0; j < kInputBlock; ++j) {
    values[j] = static_cast<Integer>(BitsOf(x[j] * inverse + FloatOf(kIntegersBegin)));
  }
  return FloatOf(largest) / static_cast<float>(kLargest);
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
