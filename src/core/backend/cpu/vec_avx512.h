#pragma once

// Sixteen floats as one 512-bit vector (AVX-512 F, BW, DQ, VL).

#include <immintrin.h>

#include <cstdint>

#include "core/backend/cpu/kernels.h"

#ifndef FT_ISA
#error "define FT_ISA, the namespace of the instruction set, before including kernel headers"
#endif
#define FT_INLINE inline __attribute__((always_inline))

namespace foretoken::cpu::FT_ISA {
namespace {

using Vec = __m512;

// As many accumulators as the 32 registers hold beside weights and inputs. Two panels at once from
// memory: with one, 8 rows of widened BF16 wait for their 8 sums (1.40 against 1.05 of one row on
// Emerald Rapids). 16 rows at once beat two blocks of 8 by a fifth, 24 at once spill.
struct VectorTiles {
  static constexpr int kMaxRows = 16;
  static constexpr int kStreamRows = 12;
  static constexpr int kStreamPanels = 2;
  static constexpr int kGroupPanels = 16;
  static constexpr int Panels(int rows) {
    if (rows <= 2) return 8;
    if (rows <= 4) return 6;
    if (rows <= 6) return 4;
    if (rows <= 8) return 3;
    return rows <= 12 ? 2 : 1;
  }
};

FT_INLINE Vec Load(const float* p) { return _mm512_loadu_ps(p); }
FT_INLINE void Store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
FT_INLINE __mmask16 FirstLanes(int n) {
  return static_cast<__mmask16>(n >= 16 ? 0xFFFFU : (1U << (n < 0 ? 0 : n)) - 1U);
}
// The first n lanes; the others are 0, and are not stored.
FT_INLINE Vec LoadFirst(const float* p, int n) { return _mm512_maskz_loadu_ps(FirstLanes(n), p); }
FT_INLINE void StoreFirst(float* p, int n, Vec v) { _mm512_mask_storeu_ps(p, FirstLanes(n), v); }
FT_INLINE Vec Set1(float x) { return _mm512_set1_ps(x); }
FT_INLINE Vec Add(Vec x, Vec y) { return _mm512_add_ps(x, y); }
FT_INLINE Vec Sub(Vec x, Vec y) { return _mm512_sub_ps(x, y); }
FT_INLINE Vec Mul(Vec x, Vec y) { return _mm512_mul_ps(x, y); }
FT_INLINE Vec Div(Vec x, Vec y) { return _mm512_div_ps(x, y); }
FT_INLINE Vec Fma(Vec x, Vec y, Vec z) { return _mm512_fmadd_ps(x, y, z); }
// The second operand where either is NaN.
FT_INLINE Vec Max(Vec x, Vec y) { return _mm512_max_ps(x, y); }
FT_INLINE Vec Min(Vec x, Vec y) { return _mm512_min_ps(x, y); }
// In the order that every instruction set has (docs/develop/arithmetic.md).
FT_INLINE float ReduceAdd(Vec v) {
  const __m256 s = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps(d, d, 1)));
}
FT_INLINE float ReduceMax(Vec v) { return _mm512_reduce_max_ps(v); }

// Lanes [0, n) of `v`, `other` elsewhere.
FT_INLINE Vec KeepBelow(Vec v, int n, float other) {
  return _mm512_mask_blend_ps(FirstLanes(n), _mm512_set1_ps(other), v);
}
// `v`, but 0 where x < limit.
FT_INLINE Vec ZeroWhereBelow(Vec v, Vec x, float limit) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_NLT_UQ), v);
}
// A bit for every lane where x is not less than y (or either is NaN).
FT_INLINE std::uint32_t NotLessMask(Vec x, Vec y) { return _mm512_cmp_ps_mask(x, y, _CMP_NLT_UQ); }

FT_INLINE Vec RoundToInteger(Vec x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// v * 2^n for integral n in [-126, 127].
FT_INLINE Vec TimesPowerOfTwo(Vec v, Vec n) { return _mm512_scalef_ps(v, n); }

FT_INLINE Vec RoundToBf16(Vec v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  return _mm512_castsi512_ps(_mm512_and_si512(up, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))));
}
// Even and odd elements of 32 bfloat16 numbers.
FT_INLINE void LoadBf16Pairs(const char* p, Vec* even, Vec* odd) {
  const __m512i v = _mm512_loadu_si512(p);
  *even = _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
  *odd = _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))));
}

// Sixteen sums of 32 bits, and sixteen pairs of integers of 16 bits.
using Sums = __m512i;
using Pairs = __m512i;
FT_INLINE Sums ZeroSums() { return _mm512_setzero_si512(); }
// Makes pairs of integers of 8 bits.
FT_INLINE Pairs LoadPairs(const std::int8_t* p) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
// The same pair sixteen times.
FT_INLINE Pairs RepeatPair(const std::int16_t* p) {
  std::int32_t pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return _mm512_set1_epi32(pair);
}
// Adds x[0] y[0] + x[1] y[1] of each pair.
FT_INLINE Sums AddProducts(Sums sums, Pairs x, Pairs y) {
  return _mm512_add_epi32(sums, _mm512_madd_epi16(x, y));
}
// As integers of 16 bits, to nearest, ties to even.
FT_INLINE void StoreNearest(std::int16_t* to, Vec v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(v)));
}
FT_INLINE Vec ToFloat(Sums sums) { return _mm512_cvtepi32_ps(sums); }

FT_INLINE void Prefetch(const char* p) { _mm_prefetch(p, _MM_HINT_T0); }

// An upper bound of -log(x), x = (2^32 - 1 - draw) / 2^32, hence of the Gumbel noise of 16 draws.
FT_INLINE Vec GumbelBound(const std::uint32_t* draws, float offset, float slope) {
  const __m512i r = _mm512_loadu_si512(draws);
  const __m512 rest = _mm512_max_ps(_mm512_cvtepu32_ps(_mm512_xor_si512(r, _mm512_set1_epi32(-1))),
                                    _mm512_set1_ps(0.5F));
  const __m512 bits = _mm512_cvtepi32_ps(_mm512_castps_si512(rest));
  return _mm512_fnmadd_ps(bits, _mm512_set1_ps(slope), _mm512_set1_ps(offset));
}

// Philox on sets of eight blocks, one block per 64-bit lane. The upper halves of the lanes hold
// garbage that the 32-bit multiplication ignores. Lane order is such that unpacking puts words in
// token order.
FT_INLINE void DrawGroup(std::uint64_t seed, std::uint64_t position, std::uint32_t group,
                         std::uint32_t* draws) {
  constexpr int kXor3 = 0x96;
  constexpr int kSets = kNoiseBlocks / 8;
  const __m512i m0 = _mm512_set1_epi64(0xD2511F53);
  const __m512i m1 = _mm512_set1_epi64(0xCD9E8D57);
  __m512i c0[kSets], c1[kSets], c2[kSets], c3[kSets];
  for (int s = 0; s < kSets; ++s) {
    c0[s] = _mm512_add_epi64(_mm512_set1_epi64(std::int64_t{group} * kNoiseBlocks + 8 * s),
                             _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7));
    c1[s] = _mm512_set1_epi64(static_cast<std::int64_t>(position));
    c2[s] = _mm512_set1_epi64(static_cast<std::int64_t>(position >> 32));
    c3[s] = _mm512_setzero_si512();
  }
  __m512i key0 = _mm512_set1_epi64(static_cast<std::int64_t>(seed));
  __m512i key1 = _mm512_set1_epi64(static_cast<std::int64_t>(seed >> 32));
  const __m512i step0 = _mm512_set1_epi64(0x9E3779B9);
  const __m512i step1 = _mm512_set1_epi64(0xBB67AE85);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    for (int s = 0; s < kSets; ++s) {
      const __m512i p0 = _mm512_mul_epu32(c0[s], m0);
      const __m512i p1 = _mm512_mul_epu32(c2[s], m1);
      c0[s] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p1, 32), c1[s], key0, kXor3);
      c2[s] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p0, 32), c3[s], key1, kXor3);
      c1[s] = p1;
      c3[s] = p0;
    }
    key0 = _mm512_add_epi64(key0, step0);
    key1 = _mm512_add_epi64(key1, step1);
  }
  for (int s = 0; s < kSets; ++s) {
    const __m512i w01 = _mm512_mask_blend_epi32(0xAAAA, c0[s], _mm512_slli_epi64(c1[s], 32));
    const __m512i w23 = _mm512_mask_blend_epi32(0xAAAA, c2[s], _mm512_slli_epi64(c3[s], 32));
    _mm512_storeu_si512(draws + 32 * s, _mm512_unpacklo_epi64(w01, w23));
    _mm512_storeu_si512(draws + 32 * s + 16, _mm512_unpackhi_epi64(w01, w23));
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
