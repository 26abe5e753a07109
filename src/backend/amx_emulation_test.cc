#include "backend/amx_emulation_test.h"

#include <gtest/gtest.h>

#include <cstring>

#define FT_ISA amx_emulated
#include "backend/cpu/vec_portable.h"
//
#include "backend/cpu/dot.h"
//
#include "backend/cpu/amx_dot.h"
//
#include "backend/cpu/kernels_impl.h"
//
#include "backend/cpu/attention/attention_impl.h"
//
#include "backend/cpu/noise_impl.h"

namespace foretoken::cpu::amx_emulated {
namespace {

// Inputs rounded to BF16 and kept so, as the tile kernels want them.
struct EmulatedStep {
  using Input = std::uint16_t;
  static constexpr int kInputs = 2;
  static void StoreInputs(std::uint16_t* to, Vec low, Vec high) {
    float rounded[kChunk];
    Store(rounded, RoundToBf16(low));
    Store(rounded + 16, RoundToBf16(high));
    for (int i = 0; i < kChunk; ++i) to[i] = static_cast<std::uint16_t>(Bf16Bits(rounded[i]));
  }
  static Vec StoreAndAdd(std::uint16_t* to, Vec low, Vec high, Vec sums) {
    StoreInputs(to, low, high);
    return Add(sums, Add(RoundToBf16(low), RoundToBf16(high)));
  }
};

// Tiles of 64-byte rows, with the faults that hardware raises as failed expectations.
struct EmulatedTiles {
  static inline thread_local bool configured = false;
  static inline thread_local TileRows shape{};
  static inline thread_local unsigned char data[8][16][64];

  static void Configure(const TileRows& rows) {
    for (const int count : rows.rows) EXPECT_TRUE(count >= 1 && count <= 16) << count;
    shape = rows;
    configured = true;
    std::memset(data, 0, sizeof(data));
  }
  static void Release() { configured = false; }
  template <int kTile>
  static void Zero() {
    EXPECT_TRUE(configured);
    std::memset(data[kTile], 0, sizeof(data[kTile]));
  }
  template <int kTile>
  static void Load(const void* from, std::size_t stride) {
    EXPECT_TRUE(configured);
    for (int row = 0; row < shape.rows[kTile]; ++row) {
      std::memcpy(data[kTile][row], static_cast<const char*>(from) + row * stride, 64);
    }
  }
  template <int kTile>
  static void Store(void* to, std::size_t stride) {
    EXPECT_TRUE(configured);
    for (int row = 0; row < shape.rows[kTile]; ++row) {
      std::memcpy(static_cast<char*>(to) + row * stride, data[kTile][row], 64);
    }
  }
  static float Element(int tile, int row, int column) {
    std::uint16_t half;
    std::memcpy(&half, data[tile][row] + 2 * column, sizeof(half));
    const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  template <int kSum, int kInputs, int kWeights>
  static void Multiply() {
    EXPECT_EQ(shape.rows[kSum], shape.rows[kInputs]);
    EXPECT_EQ(shape.rows[kWeights], 16);
    for (int m = 0; m < shape.rows[kSum]; ++m) {
      float sums[16];
      std::memcpy(sums, data[kSum][m], sizeof(sums));
      for (int k = 0; k < 16; ++k) {
        for (int n = 0; n < 16; ++n) {
          sums[n] += Element(kInputs, m, 2 * k) * Element(kWeights, k, 2 * n);
          sums[n] += Element(kInputs, m, 2 * k + 1) * Element(kWeights, k, 2 * n + 1);
        }
      }
      std::memcpy(data[kSum][m], sums, sizeof(sums));
    }
  }
};

}  // namespace

const Kernels& Table() {
  static constexpr Kernels kTable =
      MakeTable<TileDot<EmulatedTiles, EmulatedStep>, VectorDot<F32Step>>("amx_emulated");
  return kTable;
}

}  // namespace foretoken::cpu::amx_emulated
