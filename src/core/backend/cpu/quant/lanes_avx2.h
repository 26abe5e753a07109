#pragma once

// Sixteen floats or 32-bit integers in two registers of AVX2.

#include <immintrin.h>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/quant/quant_kernels.h"

#ifndef FT_ISA
#error "define FT_ISA, the namespace of the instruction set, before including kernel headers"
#endif
#define FT_INLINE inline __attribute__((always_inline))

namespace foretoken::cpu::FT_ISA {
namespace {

struct Floats {
  __m256 h[2];
};
struct Ints {
  __m256i h[2];
};

FT_INLINE Floats LoadFloats(const float* p) {
  return {{_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}};
}
FT_INLINE void StoreFloats(float* p, Floats v) {
  _mm256_storeu_ps(p, v.h[0]);
  _mm256_storeu_ps(p + 8, v.h[1]);
}
FT_INLINE Floats BroadcastFloat(const float* p) {
  return {{_mm256_broadcast_ss(p), _mm256_broadcast_ss(p)}};
}
FT_INLINE Floats ZeroFloats() { return {{_mm256_setzero_ps(), _mm256_setzero_ps()}}; }
FT_INLINE Floats Add(Floats a, Floats b) {
  return {{_mm256_add_ps(a.h[0], b.h[0]), _mm256_add_ps(a.h[1], b.h[1])}};
}
FT_INLINE Floats Mul(Floats a, Floats b) {
  return {{_mm256_mul_ps(a.h[0], b.h[0]), _mm256_mul_ps(a.h[1], b.h[1])}};
}
FT_INLINE Floats Fma(Floats a, Floats b, Floats c) {
  return {{_mm256_fmadd_ps(a.h[0], b.h[0], c.h[0]), _mm256_fmadd_ps(a.h[1], b.h[1], c.h[1])}};
}
// Every NaN becomes the one of docs/develop/arithmetic.md.
FT_INLINE Floats OneNan(Floats v) {
  const __m256 one = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));
  for (__m256& half : v.h) {
    half = _mm256_blendv_ps(half, one, _mm256_cmp_ps(half, half, _CMP_UNORD_Q));
  }
  return v;
}

FT_INLINE Ints LoadInts(const void* p) {
  const auto* const halves = static_cast<const __m256i*>(p);
  return {{_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)}};
}
FT_INLINE Ints SetInts(std::uint32_t x) {
  const __m256i half = _mm256_set1_epi32(static_cast<int>(x));
  return {{half, half}};
}
// Makes the compiler load `v` here, neither earlier nor later.
FT_INLINE void LoadNow(Ints* v) { asm volatile("" : "+x"(v->h[0]), "+x"(v->h[1])); }
FT_INLINE Ints BroadcastInt(const std::int32_t* p) {
  return SetInts(static_cast<std::uint32_t>(*p));
}
FT_INLINE Ints SetBytes(int x) {
  const __m256i half = _mm256_set1_epi8(static_cast<char>(x));
  return {{half, half}};
}
FT_INLINE Ints ZeroInts() { return {{_mm256_setzero_si256(), _mm256_setzero_si256()}}; }
FT_INLINE Ints AddInts(Ints a, Ints b) {
  return {{_mm256_add_epi32(a.h[0], b.h[0]), _mm256_add_epi32(a.h[1], b.h[1])}};
}
FT_INLINE Ints And(Ints a, Ints b) {
  return {{_mm256_and_si256(a.h[0], b.h[0]), _mm256_and_si256(a.h[1], b.h[1])}};
}
FT_INLINE Ints Or(Ints a, Ints b) {
  return {{_mm256_or_si256(a.h[0], b.h[0]), _mm256_or_si256(a.h[1], b.h[1])}};
}
// a | (b & mask).
FT_INLINE Ints OrMasked(Ints a, Ints b, Ints mask) { return Or(a, And(b, mask)); }
template <int kBits>
FT_INLINE Ints ShiftLeft(Ints v) {
  return {{_mm256_slli_epi32(v.h[0], kBits), _mm256_slli_epi32(v.h[1], kBits)}};
}
template <int kBits>
FT_INLINE Ints ShiftRight(Ints v) {
  return {{_mm256_srli_epi32(v.h[0], kBits), _mm256_srli_epi32(v.h[1], kBits)}};
}
// Each byte of `indices`, below 16, replaced by that one of `table`.
FT_INLINE Ints LookUp(const std::uint8_t* table, Ints indices) {
  const __m256i bytes =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return {{_mm256_shuffle_epi8(bytes, indices.h[0]), _mm256_shuffle_epi8(bytes, indices.h[1])}};
}

FT_INLINE Floats ToFloats(Ints v) {
  return {{_mm256_cvtepi32_ps(v.h[0]), _mm256_cvtepi32_ps(v.h[1])}};
}
FT_INLINE Floats AsFloats(Ints v) {
  return {{_mm256_castsi256_ps(v.h[0]), _mm256_castsi256_ps(v.h[1])}};
}
FT_INLINE Ints LoadWords16(const void* p) {
  const auto* const halves = static_cast<const __m128i*>(p);
  return {{_mm256_cvtepu16_epi32(_mm_loadu_si128(halves)),
           _mm256_cvtepu16_epi32(_mm_loadu_si128(halves + 1))}};
}
FT_INLINE Ints LoadSignedBytes(const void* p) {
  const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return {{_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8))}};
}
FT_INLINE Ints LoadBytes(const void* p) {
  const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return {{_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))}};
}
FT_INLINE Floats LoadHalves(const void* p) {
  const auto* const halves = static_cast<const __m128i*>(p);
  return {{_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))}};
}

// The sums of the first and of the last 16 of 32 values.
FT_INLINE void SumHalves(const std::int8_t* values, std::int32_t* sums) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
  // Sums of 8 bytes each, 128 added to every byte.
  const __m256i eights =
      _mm256_sad_epu8(_mm256_xor_si256(bytes, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
  const __m256i halves = _mm256_add_epi64(eights, _mm256_unpackhi_epi64(eights, eights));
  sums[0] = _mm256_extract_epi32(halves, 0) - 16 * 128;
  sums[1] = _mm256_extract_epi32(halves, 4) - 16 * 128;
}

// Into L2.
FT_INLINE void Prefetch(const std::byte* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
