#pragma once

// Quantising inputs, mostly in loops that compilers turn into vectors of any width, since no sum in
// them has an order. Include after a lanes_*.h.

#include "backend/cpu/quant/quant_kernels.h"

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

void QuantizeBlock(const float* x, RowBlock* to) {
  // Of positive floats the larger one has the larger bits, and NaN larger ones than infinity.
  std::uint32_t largest = 0;
  for (int j = 0; j < kInputBlock; ++j) {
    const std::uint32_t magnitude = BitsOf(x[j]) & 0x7FFFFFFF;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (largest >= kInfinityBits || largest < kSmallestBits) {
    *to = RowBlock{};
    to->scale = FloatOf(largest >= kInfinityBits ? kNanBits : 0);
    return;
  }
  to->scale = FloatOf(largest) / 127.0F;
  const float inverse = 127.0F / FloatOf(largest);
  // Adding 1.5 * 2^23 rounds to an integer, ties to even, in the low bits of the sum.
  for (int j = 0; j < kInputBlock; ++j) {
    const std::uint32_t rounded = BitsOf(x[j] * inverse + FloatOf(kIntegersBegin));
    to->values[j] = static_cast<std::int8_t>(rounded & 0xFF);
  }
  std::int32_t sums[2];
  SumHalves(to->values, sums);
  to->minus_halves[0] = -sums[0];
  to->minus_halves[1] = -sums[1];
  to->minus_sum = -sums[0] - sums[1];
}

void Quantize(const QuantizeTask& task) {
  const std::ptrdiff_t blocks = task.inputs / kInputBlock;
  for (int row = task.row_begin; row < task.row_end; ++row) {
    const int group = row / kRowGroup * kRowGroup;
    const int in_group = task.rows - group < kRowGroup ? task.rows - group : kRowGroup;
    const float* const x = task.x + row * std::ptrdiff_t{task.inputs};
    RowBlock* const to = task.to + group * blocks + (row - group);
    for (std::ptrdiff_t b = 0; b < blocks; ++b) {
      QuantizeBlock(x + b * kInputBlock, to + b * in_group);
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
