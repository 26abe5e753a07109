#pragma once

// Keys and values as integers of 8 bits with a scale for 32 of them: how they lie in a chunk, and
// the products of attention, which read the integers as they are (docs/develop/arithmetic.md).
// Queries and probabilities become integers of 16 bits, so that sums of products are exact. Include
// after a vec_*.h.

#include "base/numbers/integers.h"
#include "core/backend/cpu/kernels_impl.h"
#include "core/backend/cpu/quant/block_impl.h"

namespace foretoken::cpu::FT_ISA {
namespace {

static_assert(kInputBlock == kChunk);

// 32 numbers of each of a chunk's 32 positions. A chunk's keys, and its values, are such blocks,
// one for every 32 numbers of a head. Products take integers in pairs, of what they sum over: in
// keys that is numbers, in values positions.
struct KvBlock {
  std::int8_t integers[kChunk * kChunk];
  float scales[kChunk];  // By position.
};

// The place of an integer in a block: keys at PlaceOf(number, position), values at
// PlaceOf(position, number).
FT_INLINE int PlaceOf(int summed, int output) {
  return (summed / 2 * kChunk + output) * 2 + summed % 2;
}

// A tile of products has as many rows as its sums have registers.
constexpr int kIntegerRows = VectorTiles::kMaxRows < 8 ? VectorTiles::kMaxRows : 8;

// products [R, kChunk] = x [R, kChunk] times the integers of a block, rounded to float.
template <int R>
void IntegerTile(const std::int16_t* x, const KvBlock& block, float* products) {
  constexpr int kPanels = VectorTiles::Panels(R) > 1 ? 2 : 1;
  for (int first = 0; first < kChunk; first += kPanels * kPanel) {
    Sums sums[R][kPanels];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) sums[r][p] = ZeroSums();
    }
#pragma GCC unroll 4
    for (int step = 0; step < kChunk / 2; ++step) {
      Pairs pairs[kPanels];
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        pairs[p] = LoadPairs(block.integers + PlaceOf(2 * step, first + p * kPanel));
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const Pairs pair = RepeatPair(x + r * kChunk + 2 * step);
#pragma GCC unroll 2
        for (int p = 0; p < kPanels; ++p) sums[r][p] = AddProducts(sums[r][p], pairs[p], pair);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        Store(products + r * kChunk + first + p * kPanel, ToFloat(sums[r][p]));
      }
    }
  }
}

template <int R = 1>
void IntegerTileOf(int rows, const std::int16_t* x, const KvBlock& block, float* products) {
  if constexpr (R <= kIntegerRows) {
    if (rows == R) {
      IntegerTile<R>(x, block, products);
    } else {
      IntegerTileOf<R + 1>(rows, x, block, products);
    }
  }
}

// The same for any number of rows.
void IntegerProducts(int rows, const std::int16_t* x, const KvBlock& block, float* products) {
  for (int r = 0; r < rows; r += kIntegerRows) {
    const int count = rows - r < kIntegerRows ? rows - r : kIntegerRows;
    IntegerTileOf(count, x + r * kChunk, block, products + r * kChunk);
  }
}

struct Q8Kv {
  using Dot = VectorDot<F32Step>;  // The softmax takes shapes and number format from it.

  // Integers [blocks][queries][kChunk], then their scales [blocks][queries].
  static void PackQuery(const AttentionState& state, int query, const float* from) {
    for (int i = 0; i < state.key_dim; i += kChunk) {
      const std::size_t at = Size(i) / kChunk * state.queries + query;
      QueryScales(state)[at] = QuantizePart<kLargest16>(
          from + i, state.key_dim - i, static_cast<std::int16_t*>(state.q) + at * kChunk);
    }
  }

  static void Keep(const float* key, const float* value, int head_dim, KvChunk to, int lane) {
    for (int i = 0; i < head_dim; i += kChunk) {
      std::int8_t integers[kChunk];
      KvBlock& keys = BlockOf(to.keys, i / kChunk);
      keys.scales[lane] = QuantizePart<kLargest8>(key + i, head_dim - i, integers);
      for (int j = 0; j < kChunk; ++j) keys.integers[PlaceOf(j, lane)] = integers[j];
      if (to.values == nullptr) continue;
      KvBlock& values = BlockOf(to.values, i / kChunk);
      values.scales[lane] = QuantizePart<kLargest8>(value + i, head_dim - i, integers);
      for (int j = 0; j < kChunk; ++j) values.integers[PlaceOf(lane, j)] = integers[j];
    }
  }

  static void Copy(KvChunk from, int from_lane, int head_dim, KvChunk to, int to_lane) {
    for (int i = 0; i < head_dim; i += kChunk) {
      const KvBlock& keys = BlockOf(from.keys, i / kChunk);
      KvBlock& keys_to = BlockOf(to.keys, i / kChunk);
      for (int j = 0; j < kChunk; ++j) {
        keys_to.integers[PlaceOf(j, to_lane)] = keys.integers[PlaceOf(j, from_lane)];
      }
      keys_to.scales[to_lane] = keys.scales[from_lane];
      if (to.values == nullptr) continue;
      const KvBlock& values = BlockOf(from.values, i / kChunk);
      KvBlock& values_to = BlockOf(to.values, i / kChunk);
      for (int j = 0; j < kChunk; ++j) {
        values_to.integers[PlaceOf(to_lane, j)] = values.integers[PlaceOf(from_lane, j)];
      }
      values_to.scales[to_lane] = values.scales[from_lane];
    }
  }

  // Whole blocks, each with the scales of its keys.
  static void ValuesOfKeys(const char* keys, int /*key_dim*/, int value_dim, char* values) {
    for (int i = 0; i < value_dim; i += kChunk) {
      const KvBlock& from = reinterpret_cast<const KvBlock*>(keys)[i / kChunk];
      KvBlock& to = BlockOf(values, i / kChunk);
      for (int lane = 0; lane < kChunk; ++lane) {
        for (int j = 0; j < kChunk; ++j) {
          to.integers[PlaceOf(lane, j)] = from.integers[PlaceOf(j, lane)];
        }
        to.scales[lane] = from.scales[lane];
      }
    }
  }

  // As those of PlainKv.
  static FT_INLINE void Scores(const AttentionState& state, int first, int count, KvChunk chunk,
                               KvChunk next, float* scores) {
    alignas(64) float products[Dot::kMaxRows * kChunk];
    for (int b = 0; b < PadToChunk(state.key_dim) / kChunk; ++b) {
      FetchBlock(next.keys, b);
      const KvBlock& block = BlockOf(chunk.keys, b);
      const std::size_t at = Size(b) * state.queries + first;
      IntegerProducts(count, static_cast<const std::int16_t*>(state.q) + at * kChunk, block,
                      products);
      for (int half = 0; half < kChunk; half += kPanel) {
        const Vec scales = Load(block.scales + half);
        for (int r = 0; r < count; ++r) {
          const int to = r * kChunk + half;
          const Vec before = b == 0 ? Set1(0.0F) : Load(scores + to);
          const Vec query_scale = Set1(QueryScales(state)[at + r]);
          Store(scores + to, Fma(Mul(Load(products + to), scales), query_scale, before));
        }
      }
    }
  }

  static FT_INLINE void AddValues(const AttentionState& state, int first, int count,
                                  const float* probabilities, KvChunk chunk, KvChunk next) {
    const int width = PadToChunk(state.value_dim);
    alignas(64) float products[Dot::kMaxRows * kChunk];
    alignas(64) std::int16_t integers[Dot::kMaxRows * kChunk];
    float scales[Dot::kMaxRows];
    for (int b = 0; b < width / kChunk; ++b) {
      FetchBlock(next.values, b);
      const KvBlock& block = BlockOf(chunk.values, b);
      const Vec low = Load(block.scales);
      const Vec high = Load(block.scales + kPanel);
      for (int r = 0; r < count; ++r) {
        // The scale of a position's values goes with its probability.
        scales[r] = QuantizeWeights(Mul(Load(probabilities + r * kChunk), low),
                                    Mul(Load(probabilities + r * kChunk + kPanel), high),
                                    integers + r * kChunk);
      }
      IntegerProducts(count, integers, block, products);
      for (int r = 0; r < count; ++r) {
        float* const out = state.out + Size(first + r) * width + b * kChunk;
        const Vec scale = Set1(scales[r]);
        for (int half = 0; half < kChunk; half += kPanel) {
          Store(out + half, Fma(Load(products + r * kChunk + half), scale, Load(out + half)));
        }
      }
    }
  }

 private:
  static FT_INLINE KvBlock& BlockOf(char* part, int block) {
    return reinterpret_cast<KvBlock*>(part)[block];
  }

  static FT_INLINE float* QueryScales(const AttentionState& state) {
    const std::size_t integers = Size(state.queries) * PadToChunk(state.key_dim);
    return reinterpret_cast<float*>(static_cast<std::int16_t*>(state.q) + integers);
  }

  // The first `count` of 32 numbers, as if zeros followed.
  template <int kLargest, typename Integer>
  static FT_INLINE float QuantizePart(const float* numbers, int count, Integer* integers) {
    if (count >= kChunk) return QuantizeBlock<kLargest>(numbers, integers);
    float padded[kChunk] = {};
    for (int i = 0; i < count; ++i) padded[i] = numbers[i];
    return QuantizeBlock<kLargest>(padded, integers);
  }

  // QuantizeBlock<kLargest16> of 32 numbers of which none is negative, in registers.
  static FT_INLINE float QuantizeWeights(Vec low, Vec high, std::int16_t* integers) {
    const float largest = ReduceMax(Max(low, high));
    const Vec infinity = Set1(FloatOf(kInfinityBits));
    const bool finite = (NotLessMask(low, infinity) | NotLessMask(high, infinity)) == 0;
    if (!finite || largest < FloatOf(kSmallestBits)) {
      for (int i = 0; i < kChunk; ++i) integers[i] = 0;
      return finite ? 0.0F : FloatOf(kNanBits);
    }
    const Vec inverse = Set1(static_cast<float>(kLargest16) / largest);
    StoreNearest(integers, Mul(low, inverse));
    StoreNearest(integers + kPanel, Mul(high, inverse));
    return largest / static_cast<float>(kLargest16);
  }

  static FT_INLINE void FetchBlock(const char* part, int block) {
    if (part == nullptr) return;
    const char* const begin = part + block * sizeof(KvBlock);
    for (std::size_t i = 0; i < sizeof(KvBlock); i += 64) Prefetch(begin + i);
  }
};

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
