#pragma once

// Keys and values in the numbers that products take, BF16 or floats: how they lie in a chunk, and
// the products of attention. Include after a vec_*.h.

#include "base/numbers/integers.h"
#include "core/backend/cpu/kernels_impl.h"

namespace foretoken::cpu::FT_ISA {
namespace {

template <typename Dot>
constexpr bool kIsF32 = Dot::kInputs == 1;

// Rounded elements i and i + 1 of a row, as they lie in a BF16 pair.
FT_INLINE std::uint32_t Bf16Bits(float rounded) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &rounded, sizeof(bits));
  return bits >> 16;
}

// Where element `dim` of lane `lane` lies, in elements.
template <bool kF32>
FT_INLINE std::size_t KeyOffset(int width, int lane, int dim) {
  if (kF32) return Size(dim) * kChunk + lane;
  return (Size(lane / 16) * (width / 2) + dim / 2) * 32 + lane % 16 * 2 + dim % 2;
}
template <bool kF32>
FT_INLINE std::size_t ValueOffset(int width, int lane, int dim) {
  if (kF32) return Size(lane) * width + dim;
  return (Size(lane / 2) * width + dim) * 2 + lane % 2;
}

void StoreKvF32(const float* key, const float* value, int head_dim, KvChunk to, int lane) {
  const int width = PadToChunk(head_dim);
  auto* const keys = reinterpret_cast<float*>(to.keys);
  auto* const values = reinterpret_cast<float*>(to.values);
  for (int i = 0; i < head_dim; ++i) keys[KeyOffset<true>(width, lane, i)] = key[i];
  if (values == nullptr) return;
  for (int i = 0; i < head_dim; ++i) values[ValueOffset<true>(width, lane, i)] = value[i];
}

void StoreKvBf16(const float* key, const float* value, int head_dim, KvChunk to, int lane) {
  const int width = PadToChunk(head_dim);
  auto* const keys = reinterpret_cast<std::uint16_t*>(to.keys);
  auto* const values = reinterpret_cast<std::uint16_t*>(to.values);
  for (int i = 0; i < head_dim; i += 16) {
    const int n = head_dim - i < 16 ? head_dim - i : 16;
    float k[16];
    Store(k, RoundToBf16(LoadFirst(key + i, n)));
    for (int j = 0; j < n; j += 2) {  // head_dim is even.
      const std::uint32_t pair = Bf16Bits(k[j]) | (Bf16Bits(k[j + 1]) << 16);
      __builtin_memcpy(keys + KeyOffset<false>(width, lane, i + j), &pair, sizeof(pair));
    }
    if (values == nullptr) continue;
    float v[16];
    Store(v, RoundToBf16(LoadFirst(value + i, n)));
    for (int j = 0; j < n; ++j) {
      values[ValueOffset<false>(width, lane, i + j)] = static_cast<std::uint16_t>(Bf16Bits(v[j]));
    }
  }
}

template <typename T, bool kF32>
void CopyPlainKv(KvChunk from, int from_lane, int head_dim, KvChunk to, int to_lane) {
  const int width = PadToChunk(head_dim);
  const auto* const k = reinterpret_cast<const T*>(from.keys);
  const auto* const v = reinterpret_cast<const T*>(from.values);
  auto* const k_to = reinterpret_cast<T*>(to.keys);
  auto* const v_to = reinterpret_cast<T*>(to.values);
  constexpr int kPair = kF32 ? 1 : 2;
  for (int i = 0; i < head_dim; i += kPair) {
    __builtin_memcpy(k_to + KeyOffset<kF32>(width, to_lane, i),
                     k + KeyOffset<kF32>(width, from_lane, i), kPair * sizeof(T));
  }
  if (v_to == nullptr) return;
  for (int i = 0; i < head_dim; ++i) {
    v_to[ValueOffset<kF32>(width, to_lane, i)] = v[ValueOffset<kF32>(width, from_lane, i)];
  }
}

void ValuesOfF32Keys(const char* keys, int /*key_dim*/, int value_dim, char* values) {
  const int width = PadToChunk(value_dim);
  const auto* const from = reinterpret_cast<const float*>(keys);
  auto* const to = reinterpret_cast<float*>(values);
  for (int lane = 0; lane < kChunk; ++lane) {
    for (int i = 0; i < value_dim; ++i) {
      to[ValueOffset<true>(width, lane, i)] = from[KeyOffset<true>(width, lane, i)];
    }
  }
}

// Two numbers of two lanes at once.
void ValuesOfBf16Keys(const char* keys, int key_dim, int value_dim, char* values) {
  const int width = PadToChunk(value_dim);
  const int key_width = PadToChunk(key_dim);
  const auto* const from = reinterpret_cast<const std::uint32_t*>(keys);
  auto* const to = reinterpret_cast<std::uint32_t*>(values);
  for (int lane = 0; lane < kChunk; lane += 2) {
    for (int i = 0; i < value_dim; i += 2) {
      const std::uint32_t even = from[KeyOffset<false>(key_width, lane, i) / 2];
      const std::uint32_t odd = from[KeyOffset<false>(key_width, lane + 1, i) / 2];
      std::uint32_t* const pair = to + ValueOffset<false>(width, lane, i) / 2;
      pair[0] = (even & 0xFFFFU) | odd << 16;
      pair[1] = even >> 16 | (odd & 0xFFFF0000U);
    }
  }
}

// What attention does with such keys and values (attention_impl.h). `Dot` multiplies them.
template <typename Dot_>
struct PlainKv {
  using Dot = Dot_;
  using Input = typename Dot::Input;
  static constexpr auto Keep = kIsF32<Dot> ? StoreKvF32 : StoreKvBf16;
  static constexpr auto Copy =
      kIsF32<Dot> ? CopyPlainKv<float, true> : CopyPlainKv<std::uint16_t, false>;

  static constexpr auto ValuesOfKeys = kIsF32<Dot> ? ValuesOfF32Keys : ValuesOfBf16Keys;

  static void PackQuery(const AttentionState& state, int query, const float* from) {
    PackRow<Dot>(from, state.key_dim, query, state.queries, static_cast<Input*>(state.q));
  }

  // scores [count, kChunk] = the products of queries [first, first + count) and the chunk's keys.
  static FT_INLINE void Scores(const AttentionState& state, int first, int count, KvChunk chunk,
                               KvChunk next, float* scores) {
    const int width = PadToChunk(state.key_dim);
    TileArgs<Input> t;
    t.x = static_cast<const Input*>(state.q) + Size(first) * kChunk;
    t.x_chunk = Size(state.queries) * kChunk;
    t.w = chunk.keys;
    t.row_bytes = kIsF32<Dot> ? 128 : 64;
    t.panel_bytes = kIsF32<Dot> ? 64 : Size(width) * 32;
    t.chunks = width / kChunk;
    t.c = scores;
    t.c_stride = kChunk;
    t.add = false;
    t.ahead = next.keys != nullptr ? next.keys - chunk.keys : 0;
    t.turn = PTRDIFF_MAX;
    t.stream = false;
    Dot::Run(count, 2, t);
  }

  // Adds the chunk's values, each times its probability in [count, kChunk], to the queries' output.
  static FT_INLINE void AddValues(const AttentionState& state, int first, int count,
                                  const Input* probabilities, KvChunk chunk, KvChunk next) {
    const int width = PadToChunk(state.value_dim);
    TileArgs<Input> t;
    t.x = probabilities;
    t.x_chunk = 0;
    t.w = chunk.values;
    t.row_bytes = Size(width) * 4;
    t.panel_bytes = 64;
    t.chunks = 1;
    t.c = state.out + Size(first) * width;
    t.c_stride = width;
    t.add = true;
    t.ahead = next.values != nullptr ? next.values - chunk.values : 0;
    t.turn = PTRDIFF_MAX;
    t.stream = false;
    Dot::Run(count, width / kPanel, t);
  }
};

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
