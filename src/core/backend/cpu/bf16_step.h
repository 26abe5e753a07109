#pragma once

// The BF16 dot product instruction of AVX-512 (vdpbf16ps). Include after vec_avx512.h.

#include "core/backend/cpu/dot.h"

namespace foretoken::cpu::FT_ISA {
namespace {

// Two inputs a step in one instruction; inputs are rounded to BF16 and kept so.
struct NativeBf16Step {
  using Input = std::uint16_t;
  static constexpr int kInputs = 2;
  using Weight = __m512i;
  using Value = __m512i;
  static FT_INLINE Weight LoadWeight(const char* p) { return _mm512_loadu_si512(p); }
  static FT_INLINE Value LoadValue(const std::uint16_t* x) {
    std::int32_t pair;
    __builtin_memcpy(&pair, x, sizeof(pair));
    return _mm512_set1_epi32(pair);
  }
  static FT_INLINE Vec Step(Vec sum, Weight w, Value x) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(w), reinterpret_cast<__m512bh>(x));
  }
  static FT_INLINE void StoreInputs(std::uint16_t* to, Vec low, Vec high) {
    const __m512bh rounded = _mm512_cvtne2ps_pbh(high, low);
    _mm512_storeu_si512(to, reinterpret_cast<__m512i>(rounded));
  }
  static FT_INLINE Vec StoreAndAdd(std::uint16_t* to, Vec low, Vec high, Vec sums) {
    const __m512bh rounded = _mm512_cvtne2ps_pbh(high, low);
    _mm512_storeu_si512(to, reinterpret_cast<__m512i>(rounded));
    const __m512i ones = _mm512_set1_epi32(0x3F803F80);
    return _mm512_dpbf16_ps(sums, rounded, reinterpret_cast<__m512bh>(ones));
  }
};

// Measured on Zen 4, which reads one stream fastest and does one such product a cycle, so that 8
// sums hide what it takes.
struct NativeBf16Tiles : VectorTiles {
  static constexpr int kMaxRows = 12;
  static constexpr int kStreamRows = 8;
  static constexpr int kStreamPanels = 1;
};

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
