#pragma once

// Integer dot products by vpmaddubsw, which adds two products in 16 bits and saturates. Include
// after lanes_avx512.h.

namespace foretoken::cpu::FT_ISA {
namespace {

constexpr int kMostRows = 8;
// One: its sums are in a register.
template <int kRows>
constexpr int kDotRows = 1;

// Whether codes of kBits are multiplied by the values as they are. Pairs of products with codes of
// 8 bits do not fit in 16: those, 128 too large, are taken as the sign and magnitude of the weight.
template <int kBits>
constexpr bool kCodesAsTheyAre = kBits < 8;

// Codes of `kSteps` steps.
template <int kBits, int kSteps>
struct Steps {
  Ints codes[kSteps];
  __mmask64 negative[kBits == 8 ? kSteps : 1];
};
template <int kBits, int kSteps>
FT_INLINE void Prepare(const Ints* codes, Steps<kBits, kSteps>* steps) {
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) {
    if constexpr (kCodesAsTheyAre<kBits>) {
      steps->codes[s] = codes[s];
    } else {
      const Ints weights = _mm512_xor_si512(codes[s], _mm512_set1_epi8(-128));
      steps->negative[s] = _mm512_movepi8_mask(weights);
      steps->codes[s] = _mm512_abs_epi8(weights);
    }
  }
}

// Pairs of products that can be added up in 16 bits.
constexpr int PairsThatFit(int bits) { return 32767 / (2 * 127 * ((1 << bits) - 1)); }

// sums[r] += the codes times the 4 * kSteps values at `values` + r * stride.
template <int kBits, int kSteps, int kRows>
FT_INLINE void Dot(const Steps<kBits, kSteps>& steps, const std::int8_t* values, std::size_t stride,
                   Ints* sums) {
  const Ints ones = _mm512_set1_epi16(1);
  constexpr int kFit = kCodesAsTheyAre<kBits> ? PairsThatFit(kBits) : 1;
  constexpr int kTogether = kFit < kSteps ? kFit : kSteps;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int begin = 0; begin < kSteps; begin += kTogether) {
      Ints pairs = _mm512_setzero_si512();
#pragma GCC unroll 8
      for (int s = begin; s < begin + kTogether; ++s) {
        std::int32_t word;
        __builtin_memcpy(&word, values + r * stride + 4 * s, sizeof(word));
        Ints four = _mm512_set1_epi32(word);
        if constexpr (!kCodesAsTheyAre<kBits>) {
          four = _mm512_mask_sub_epi8(four, steps.negative[s], _mm512_setzero_si512(), four);
        }
        const Ints product = _mm512_maddubs_epi16(steps.codes[s], four);
        pairs = s == begin ? product : _mm512_add_epi16(pairs, product);
      }
      sums[r] = _mm512_add_epi32(sums[r], _mm512_madd_epi16(pairs, ones));
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
