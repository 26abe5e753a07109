#pragma once

// Sixteen floats or 32-bit integers in a register of AVX-512.

#include <immintrin.h>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/quant/quant_kernels.h"

#ifndef FT_ISA
#error "define FT_ISA, the namespace of the instruction set, before including kernel headers"
#endif
#define FT_INLINE inline __attribute__((always_inline))

namespace foretoken::cpu::FT_ISA {
namespace {

using Floats = __m512;
using Ints = __m512i;

FT_INLINE Floats LoadFloats(const float* p) { return _mm512_loadu_ps(p); }
FT_INLINE void StoreFloats(float* p, Floats v) { _mm512_storeu_ps(p, v); }
FT_INLINE Floats BroadcastFloat(const float* p) { return _mm512_set1_ps(*p); }
FT_INLINE Floats ZeroFloats() { return _mm512_setzero_ps(); }
FT_INLINE Floats Add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
FT_INLINE Floats Mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
FT_INLINE Floats Fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
// Every NaN becomes the one of docs/develop/arithmetic.md.
FT_INLINE Floats OneNan(Floats v) {
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  return _mm512_mask_mov_ps(v, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000)));
}

FT_INLINE Ints LoadInts(const void* p) { return _mm512_loadu_si512(p); }
// Makes the compiler load `v` here, neither earlier nor later.
FT_INLINE void LoadNow(Ints* v) { asm volatile("" : "+v"(*v)); }
FT_INLINE Ints BroadcastInt(const std::int32_t* p) { return _mm512_set1_epi32(*p); }
FT_INLINE Ints SetInts(std::uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
FT_INLINE Ints SetBytes(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
FT_INLINE Ints ZeroInts() { return _mm512_setzero_si512(); }
FT_INLINE Ints AddInts(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
FT_INLINE Ints And(Ints a, Ints b) { return _mm512_and_si512(a, b); }
// a | (b & mask).
FT_INLINE Ints OrMasked(Ints a, Ints b, Ints mask) {
  return _mm512_ternarylogic_epi32(a, b, mask, 0xF8);
}
template <int kBits>
FT_INLINE Ints ShiftLeft(Ints v) {
  return _mm512_slli_epi32(v, kBits);
}
template <int kBits>
FT_INLINE Ints ShiftRight(Ints v) {
  return _mm512_srli_epi32(v, kBits);
}
// Each byte of `indices`, below 16, replaced by that one of `table`.
FT_INLINE Ints LookUp(const std::uint8_t* table, Ints indices) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), indices);
}

FT_INLINE Floats ToFloats(Ints v) { return _mm512_cvtepi32_ps(v); }
FT_INLINE Floats AsFloats(Ints v) { return _mm512_castsi512_ps(v); }
FT_INLINE Floats LoadHalves(const void* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
FT_INLINE Ints LoadWords16(const void* p) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
FT_INLINE Ints LoadSignedBytes(const void* p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
FT_INLINE Ints LoadBytes(const void* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
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
