#pragma once

// Tiles in plain loops, with the faults that hardware raises as failed expectations. Include with
// FT_ISA defined.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/backend/cpu/amx/tile_shapes.h"

namespace foretoken::cpu::FT_ISA {
namespace {

struct EmulatedTiles {
  static inline thread_local bool configured = false;
  static inline thread_local TileShapes shapes{};
  static inline thread_local unsigned char data[8][16][64];

  static void Configure(const TileShapes& given) {
    for (const int rows : given.rows) EXPECT_TRUE(rows >= 1 && rows <= 16) << rows;
    for (const int bytes : given.row_bytes) EXPECT_TRUE(bytes >= 4 && bytes <= 64) << bytes;
    shapes = given;
    configured = true;
    std::memset(data, 0, sizeof(data));
  }
  static void Release() {
    EXPECT_TRUE(configured);
    configured = false;
  }
  template <int kTile>
  static void Zero() {
    EXPECT_TRUE(configured);
    std::memset(data[kTile], 0, sizeof(data[kTile]));
  }
  template <int kTile>
  static void Load(const void* from, std::size_t stride) {
    Zero<kTile>();
    for (int row = 0; row < shapes.rows[kTile]; ++row) {
      std::memcpy(data[kTile][row], static_cast<const char*>(from) + row * stride,
                  shapes.row_bytes[kTile]);
    }
  }
  template <int kTile>
  static void Store(void* to, std::size_t stride) {
    EXPECT_TRUE(configured);
    for (int row = 0; row < shapes.rows[kTile]; ++row) {
      std::memcpy(static_cast<char*>(to) + row * stride, data[kTile][row], shapes.row_bytes[kTile]);
    }
  }
  template <int kSum, int kInputs, int kWeights>
  static void MultiplyBf16() {
    ExpectFitting(kSum, kInputs, kWeights);
    for (int m = 0; m < shapes.rows[kSum]; ++m) {
      for (int k = 0; k < shapes.rows[kWeights]; ++k) {
        for (int n = 0; n < shapes.row_bytes[kSum] / 4; ++n) {
          auto sum = Element<float>(kSum, m, n);
          for (int j = 0; j < 2; ++j) {
            sum += Bf16(kInputs, m, 2 * k + j) * Bf16(kWeights, k, 2 * n + j);
          }
          std::memcpy(data[kSum][m] + 4 * n, &sum, sizeof(sum));
        }
      }
    }
  }
  template <int kSum, int kInputs, int kWeights>
  static void MultiplyInt8() {
    ExpectFitting(kSum, kInputs, kWeights);
    for (int m = 0; m < shapes.rows[kSum]; ++m) {
      for (int k = 0; k < shapes.rows[kWeights]; ++k) {
        for (int n = 0; n < shapes.row_bytes[kSum] / 4; ++n) {
          auto sum = Element<std::int32_t>(kSum, m, n);
          for (int j = 0; j < 4; ++j) {
            sum += Element<std::int8_t>(kInputs, m, 4 * k + j) *
                   Element<std::int8_t>(kWeights, k, 4 * n + j);
          }
          std::memcpy(data[kSum][m] + 4 * n, &sum, sizeof(sum));
        }
      }
    }
  }

 private:
  static void ExpectFitting(int sum, int inputs, int weights) {
    EXPECT_TRUE(configured);
    EXPECT_EQ(shapes.rows[sum], shapes.rows[inputs]);
    EXPECT_EQ(shapes.row_bytes[sum], shapes.row_bytes[weights]);
    EXPECT_EQ(shapes.row_bytes[inputs], 4 * shapes.rows[weights]);
  }
  template <typename T>
  static T Element(int tile, int row, int column) {
    T value;
    std::memcpy(&value, data[tile][row] + sizeof(T) * column, sizeof(value));
    return value;
  }
  static float Bf16(int tile, int row, int column) {
    const std::uint32_t bits = std::uint32_t{Element<std::uint16_t>(tile, row, column)} << 16;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
};

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
