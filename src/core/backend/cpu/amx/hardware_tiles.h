#pragma once

// The processor's tiles. Instructions name tiles as immediates, hence the template arguments; they
// are written out because the compiler's macros neither take those nor tell it that memory is read.
// Include after a header that defines FT_INLINE.

#include <immintrin.h>

#include <cstddef>

#include "core/backend/cpu/amx/tile_shapes.h"

namespace foretoken::cpu::FT_ISA {
namespace {

struct HardwareTiles {
  static FT_INLINE void Configure(const TileShapes& shapes) {
    struct alignas(64) Config {
      std::uint8_t palette;
      std::uint8_t start_row;
      std::uint8_t reserved[14];
      std::uint16_t row_bytes[16];
      std::uint8_t rows[16];
    };
    static_assert(sizeof(Config) == 64);
    Config config = {};
    config.palette = 1;
    for (int i = 0; i < 8; ++i) {
      config.row_bytes[i] = shapes.row_bytes[i];
      config.rows[i] = shapes.rows[i];
    }
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  static FT_INLINE void Release() { _tile_release(); }
  template <int kTile>
  static FT_INLINE void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  static FT_INLINE void Load(const void* from, std::size_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static FT_INLINE void Store(void* to, std::size_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
  }
  /// Sums of floats += inputs * weights in BF16.
  template <int kSum, int kInputs, int kWeights>
  static FT_INLINE void MultiplyBf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0"
                 :
                 : "i"(kSum), "i"(kInputs), "i"(kWeights));
  }
  /// Sums of 32-bit integers += inputs * weights of 8 bits, both signed.
  template <int kSum, int kInputs, int kWeights>
  static FT_INLINE void MultiplyInt8() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kInputs), "i"(kWeights));
  }
};

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
