#pragma once

// Sixteen floats as two 256-bit vectors (AVX2 and FMA).

#include <immintrin.h>

#include <cstdint>

#include "core/backend/cpu/kernels.h"

#ifndef FT_ISA
#error "define FT_ISA, the namespace of the instruction set, before including kernel headers"
#endif
#define FT_INLINE inline __attribute__((always_inline))

namespace foretoken::cpu::FT_ISA {
namespace {

struct Vec {
  __m256 a;
  __m256 b;
};

struct VectorTiles {
  static constexpr int kMaxRows = 4;
  static constexpr int kStreamRows = 4;
  static constexpr int kStreamPanels = 1;
  static constexpr int kGroupPanels = 4;
  static constexpr int Panels(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }
};

FT_INLINE Vec Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
FT_INLINE void Store(float* p, Vec v) {
  _mm256_storeu_ps(p, v.a);
  _mm256_storeu_ps(p + 8, v.b);
}
FT_INLINE Vec Set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
FT_INLINE Vec Add(Vec x, Vec y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
FT_INLINE Vec Sub(Vec x, Vec y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
FT_INLINE Vec Mul(Vec x, Vec y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
FT_INLINE Vec Div(Vec x, Vec y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
FT_INLINE Vec Fma(Vec x, Vec y, Vec z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
// The second operand where either is NaN.
FT_INLINE Vec Max(Vec x, Vec y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
FT_INLINE Vec Min(Vec x, Vec y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }

FT_INLINE float ReduceAdd(Vec v) {
  const __m256 s = _mm256_add_ps(v.a, v.b);
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps(d, d, 1)));
}
FT_INLINE float ReduceMax(Vec v) {
  const __m256 s = _mm256_max_ps(v.a, v.b);
  const __m128 q = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_shuffle_ps(d, d, 1)));
}

// Lanes [0, n) of `v`, `other` elsewhere.
FT_INLINE Vec KeepBelow(Vec v, int n, float other) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256 fill = _mm256_set1_ps(other);
  const __m256i low = _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lanes);
  const __m256i high = _mm256_cmpgt_epi32(_mm256_set1_epi32(n - 8), lanes);
  return {_mm256_blendv_ps(fill, v.a, _mm256_castsi256_ps(low)),
          _mm256_blendv_ps(fill, v.b, _mm256_castsi256_ps(high))};
}
// `v`, but 0 where x < limit.
FT_INLINE Vec ZeroWhereBelow(Vec v, Vec x, float limit) {
  const __m256 l = _mm256_set1_ps(limit);
  return {_mm256_andnot_ps(_mm256_cmp_ps(x.a, l, _CMP_LT_OQ), v.a),
          _mm256_andnot_ps(_mm256_cmp_ps(x.b, l, _CMP_LT_OQ), v.b)};
}
// A bit for every lane where x is not less than y (or either is NaN).
FT_INLINE std::uint32_t NotLessMask(Vec x, Vec y) {
  const int low = _mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_NLT_UQ));
  const int high = _mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_NLT_UQ));
  return static_cast<std::uint32_t>(low | (high << 8));
}

FT_INLINE Vec RoundToInteger(Vec x) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.a, kNearest), _mm256_round_ps(x.b, kNearest)};
}
FT_INLINE __m256 PowerOfTwo(__m256 n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
// v * 2^n for integral n in [-126, 127].
FT_INLINE Vec TimesPowerOfTwo(Vec v, Vec n) { return Mul(v, {PowerOfTwo(n.a), PowerOfTwo(n.b)}); }

FT_INLINE __m256 RoundToBf16Half(__m256 v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
  return _mm256_castsi256_ps(_mm256_and_si256(up, _mm256_set1_epi32(static_cast<int>(0xFFFF0000))));
}
FT_INLINE Vec RoundToBf16(Vec v) { return {RoundToBf16Half(v.a), RoundToBf16Half(v.b)}; }
// Even and odd elements of 32 bfloat16 numbers.
FT_INLINE void LoadBf16Pairs(const char* p, Vec* even, Vec* odd) {
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
  const __m256i high = _mm256_set1_epi32(static_cast<int>(0xFFFF0000));
  *even = {_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
           _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))};
  *odd = {_mm256_castsi256_ps(_mm256_and_si256(a, high)),
          _mm256_castsi256_ps(_mm256_and_si256(b, high))};
}

// Sixteen sums of 32 bits, and sixteen pairs of integers of 16 bits.
struct Sums {
  __m256i a;
  __m256i b;
};
using Pairs = Sums;
FT_INLINE Sums ZeroSums() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
// Makes pairs of integers of 8 bits.
FT_INLINE Pairs LoadPairs(const std::int8_t* p) {
  const auto* const from = reinterpret_cast<const __m128i*>(p);
  return {_mm256_cvtepi8_epi16(_mm_loadu_si128(from)),
          _mm256_cvtepi8_epi16(_mm_loadu_si128(from + 1))};
}
// The same pair sixteen times.
FT_INLINE Pairs RepeatPair(const std::int16_t* p) {
  std::int32_t pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return {_mm256_set1_epi32(pair), _mm256_set1_epi32(pair)};
}
// Adds x[0] y[0] + x[1] y[1] of each pair.
FT_INLINE Sums AddProducts(Sums sums, Pairs x, Pairs y) {
  return {_mm256_add_epi32(sums.a, _mm256_madd_epi16(x.a, y.a)),
          _mm256_add_epi32(sums.b, _mm256_madd_epi16(x.b, y.b))};
}
// As integers of 16 bits, to nearest, ties to even.
FT_INLINE void StoreNearest(std::int16_t* to, Vec v) {
  // Halves of 128 bits are packed by themselves.
  const __m256i mixed = _mm256_packs_epi32(_mm256_cvtps_epi32(v.a), _mm256_cvtps_epi32(v.b));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute4x64_epi64(mixed, 0xD8));
}
FT_INLINE Vec ToFloat(Sums sums) {
  return {_mm256_cvtepi32_ps(sums.a), _mm256_cvtepi32_ps(sums.b)};
}

FT_INLINE void Prefetch(const char* p) { _mm_prefetch(p, _MM_HINT_T0); }

// Unsigned to float without AVX-512: the halves are exact, their sum is rounded once.
FT_INLINE __m256 UnsignedToFloat(__m256i v) {
  const __m256 low = _mm256_cvtepi32_ps(_mm256_and_si256(v, _mm256_set1_epi32(0xFFFF)));
  const __m256 high = _mm256_cvtepi32_ps(_mm256_srli_epi32(v, 16));
  return _mm256_fmadd_ps(high, _mm256_set1_ps(65536.0F), low);
}
FT_INLINE __m256 GumbelBoundHalf(const std::uint32_t* draws, float offset, float slope) {
  const __m256i r = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(draws));
  const __m256 rest = _mm256_max_ps(UnsignedToFloat(_mm256_xor_si256(r, _mm256_set1_epi32(-1))),
                                    _mm256_set1_ps(0.5F));
  const __m256 bits = _mm256_cvtepi32_ps(_mm256_castps_si256(rest));
  return _mm256_fnmadd_ps(bits, _mm256_set1_ps(slope), _mm256_set1_ps(offset));
}
// An upper bound of -log(x), x = (2^32 - 1 - draw) / 2^32, hence of the Gumbel noise of 16 draws.
FT_INLINE Vec GumbelBound(const std::uint32_t* draws, float offset, float slope) {
  return {GumbelBoundHalf(draws, offset, slope), GumbelBoundHalf(draws + 8, offset, slope)};
}

// Philox on sets of four blocks, one block per 64-bit lane. The upper halves of the lanes hold
// garbage that the 32-bit multiplication ignores. Lane order is such that unpacking puts words in
// token order.
FT_INLINE void DrawGroup(std::uint64_t seed, std::uint64_t position, std::uint32_t group,
                         std::uint32_t* draws) {
  constexpr int kSets = kNoiseBlocks / 4;
  const __m256i m0 = _mm256_set1_epi64x(0xD2511F53);
  const __m256i m1 = _mm256_set1_epi64x(0xCD9E8D57);
  __m256i c0[kSets], c1[kSets], c2[kSets], c3[kSets];
  for (int s = 0; s < kSets; ++s) {
    c0[s] = _mm256_add_epi64(_mm256_set1_epi64x(std::int64_t{group} * kNoiseBlocks + 4 * s),
                             _mm256_setr_epi64x(0, 2, 1, 3));
    c1[s] = _mm256_set1_epi64x(static_cast<std::int64_t>(position));
    c2[s] = _mm256_set1_epi64x(static_cast<std::int64_t>(position >> 32));
    c3[s] = _mm256_setzero_si256();
  }
  std::uint32_t k0 = static_cast<std::uint32_t>(seed);
  std::uint32_t k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const __m256i key0 = _mm256_set1_epi64x(k0);
    const __m256i key1 = _mm256_set1_epi64x(k1);
    for (int s = 0; s < kSets; ++s) {
      const __m256i p0 = _mm256_mul_epu32(c0[s], m0);
      const __m256i p1 = _mm256_mul_epu32(c2[s], m1);
      c0[s] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1[s]), key0);
      c2[s] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3[s]), key1);
      c1[s] = p1;
      c3[s] = p0;
    }
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  for (int s = 0; s < kSets; ++s) {
    const __m256i w01 = _mm256_blend_epi32(c0[s], _mm256_slli_epi64(c1[s], 32), 0xAA);
    const __m256i w23 = _mm256_blend_epi32(c2[s], _mm256_slli_epi64(c3[s], 32), 0xAA);
    auto* const to = reinterpret_cast<__m256i*>(draws + 16 * s);
    _mm256_storeu_si256(to, _mm256_unpacklo_epi64(w01, w23));
    _mm256_storeu_si256(to + 1, _mm256_unpackhi_epi64(w01, w23));
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA

#include "core/backend/cpu/vec_unmasked.h"
