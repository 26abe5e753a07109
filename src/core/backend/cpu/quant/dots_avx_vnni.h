#pragma once

// Integer dot products by vpdpbusd in registers of 256 bits, which is AddProducts(sums, codes,
// values): in every lane of 32 bits, sums + the four products of unsigned codes and signed values.
// Include after lanes_avx2.h and that function. (vpdpbssd, whose codes are signed, would save what
// a sum starts from, one addition in seventeen operations of a row, on few processors.)

#include "core/backend/cpu/quant/whole_codes.h"

namespace foretoken::cpu::FT_ISA {
namespace {

constexpr int kMostRows = 4;
// All of them, so that a weight is loaded once for all.
template <int kRows>
constexpr int kDotRows = kRows;

FT_INLINE __m256i FourValues(const std::int8_t* values) {
  std::int32_t four;
  __builtin_memcpy(&four, values, sizeof(four));
  return _mm256_set1_epi32(four);
}

// The same for one step: sums[r] += codes * the four values at `values` + r * stride.
template <int kRows>
FT_INLINE void AddStep(const Ints& codes, const std::int8_t* values, std::size_t stride,
                       Ints* sums) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const __m256i four = FourValues(values + r * stride);
    for (int h = 0; h < 2; ++h) sums[r].h[h] = AddProducts(sums[r].h[h], codes.h[h], four);
  }
}

// sums[r] += the codes times the 4 * kSteps values at `values` + r * stride. Of few rows every
// other step has sums of its own, since each addition waits for the one before it. Of more, steps
// are a loop: where they are not, compilers load all values first, for which there are no
// registers.
template <int kBits, int kSteps, int kRows>
FT_INLINE void Dot(const Steps<kBits, kSteps>& steps, const std::int8_t* values, std::size_t stride,
                   Ints* sums) {
  if constexpr (kRows <= 2) {
    Ints odd[kRows];
    for (int r = 0; r < kRows; ++r) odd[r] = ZeroInts();
#pragma GCC unroll 8
    for (int s = 0; s < kSteps; ++s) {
      AddStep<kRows>(steps.codes[s], values + 4 * s, stride, s % 2 == 1 ? odd : sums);
    }
    for (int r = 0; r < kRows; ++r) sums[r] = AddInts(sums[r], odd[r]);
  } else {
#pragma GCC unroll 1
    for (int s = 0; s < kSteps; ++s) {
      AddStep<kRows>(steps.codes[s], values + 4 * s, stride, sums);
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
