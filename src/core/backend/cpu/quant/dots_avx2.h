#pragma once

// Integer dot products by vpmaddubsw, which adds two products in 16 bits and saturates. Include
// after lanes_avx2.h.

namespace foretoken::cpu::FT_ISA {
namespace {

constexpr int kMostRows = 4;
// All of them, so that a weight is loaded once for all.
template <int kRows>
constexpr int kDotRows = kRows;

// Whether codes of kBits are multiplied by the values as they are. Pairs of products with codes of
// 8 bits do not fit in 16: those, 128 too large, are taken as the sign and magnitude of the weight.
template <int kBits>
constexpr bool kCodesAsTheyAre = kBits < 8;

// Codes of `kSteps` steps.
template <int kBits, int kSteps>
struct Steps {
  Ints codes[kSteps];
  Ints weights[kBits == 8 ? kSteps : 1];
};
template <int kBits, int kSteps>
FT_INLINE void Prepare(const Ints* codes, Steps<kBits, kSteps>* steps) {
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) {
    if constexpr (kCodesAsTheyAre<kBits>) {
      steps->codes[s] = codes[s];
    } else {
      for (int h = 0; h < 2; ++h) {
        steps->weights[s].h[h] = _mm256_xor_si256(codes[s].h[h], _mm256_set1_epi8(-128));
        steps->codes[s].h[h] = _mm256_abs_epi8(steps->weights[s].h[h]);
      }
    }
  }
}

FT_INLINE __m256i FourValues(const std::int8_t* values) {
  std::int32_t four;
  __builtin_memcpy(&four, values, sizeof(four));
  return _mm256_set1_epi32(four);
}

// Pairs of products that can be added up in 16 bits.
constexpr int PairsThatFit(int bits) { return 32767 / (2 * 127 * ((1 << bits) - 1)); }

// sums[r] += the codes times the 4 * kSteps values at `values` + r * stride. Steps are a loop:
// where they are not, compilers load all values first, for which there are no registers.
template <int kBits, int kSteps, int kRows>
FT_INLINE void Dot(const Steps<kBits, kSteps>& steps, const std::int8_t* values, std::size_t stride,
                   Ints* sums) {
  const __m256i ones = _mm256_set1_epi16(1);
  constexpr int kFit = kCodesAsTheyAre<kBits> ? PairsThatFit(kBits) : 1;
  constexpr int kTogether = kFit < kSteps ? kFit : kSteps;
#pragma GCC unroll 1
  for (int begin = 0; begin < kSteps; begin += kTogether) {
    Ints pairs[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) pairs[r] = ZeroInts();
#pragma GCC unroll 4
    for (int s = begin; s < begin + kTogether; ++s) {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const __m256i four = FourValues(values + r * stride + 4 * s);
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
          __m256i signed_four = four;
          if constexpr (!kCodesAsTheyAre<kBits>) {
            signed_four = _mm256_sign_epi8(four, steps.weights[s].h[h]);
          }
          const __m256i products = _mm256_maddubs_epi16(steps.codes[s].h[h], signed_four);
          pairs[r].h[h] = kTogether == 1 ? products : _mm256_add_epi16(pairs[r].h[h], products);
        }
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        sums[r].h[h] = _mm256_add_epi32(sums[r].h[h], _mm256_madd_epi16(pairs[r].h[h], ones));
      }
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
