#pragma once

// Attention over one chunk of 32 keys, and the KV layouts. Include after a vec_*.h.

#include "backend/cpu/kernels_impl.h"

namespace foretoken::cpu::FT_ISA {
namespace {

template <typename Dot>
constexpr bool kIsF32 = Dot::kInputs == 1;

template <typename Dot>
void PackQuery(const AttentionState& state, int query, const float* from) {
  PackRow<Dot>(from, state.head_dim, query, state.queries,
               static_cast<typename Dot::Input*>(state.q));
}

// The online softmax of queries [first, first + count) over their scores of one chunk: rescales
// what came before and packs the probabilities as inputs of the product with the values. Scores
// and maxima are in units of log 2.
template <typename Dot>
FT_INLINE void SoftmaxBlock(const AttentionState& state, int first, int count, float* scores,
                            typename Dot::Input* probabilities) {
  constexpr float kMinusInfinity = -__builtin_inff();
  constexpr int kRoom = (Dot::kMaxRows + 15) / 16 * 16;
  alignas(64) float now[kRoom];
  alignas(64) float factors[kRoom];
  const Vec scale = Set1(state.scale);
  for (int r = 0; r < count; ++r) {
    float* const row = scores + r * kChunk;
    Vec low = Load(row);
    Vec high = Load(row + 16);
    const int seen = state.seen[first + r];
    if (seen < kChunk) {
      low = KeepBelow(low, seen, kMinusInfinity);
      high = KeepBelow(high, seen - 16, kMinusInfinity);
      Store(row, low);
      Store(row + 16, high);
    }
    now[r] = ReduceMax(Max(low, high));
  }
  for (int r = 0; r < count; r += 16) {
    float* const maxima = state.maxima + first + r;
    const Vec before = LoadFirst(maxima, count - r);
    const Vec after = Max(Mul(LoadFirst(now + r, count - r), scale), before);
    StoreFirst(maxima, count - r, after);
    Store(now + r, after);
    Store(factors + r, Exp2<true>(Sub(before, after)));
  }
  const int width = PadToChunk(state.head_dim);
  for (int r = 0; r < count; ++r) {
    const Vec shift = Set1(-now[r]);
    const Vec low = Exp2<kIsF32<Dot>>(Fma(Load(scores + r * kChunk), scale, shift));
    const Vec high = Exp2<kIsF32<Dot>>(Fma(Load(scores + r * kChunk + 16), scale, shift));
    float* const sums = state.sums + static_cast<std::size_t>(first + r) * kPanel;
    const Vec factor = Set1(factors[r]);
    Store(sums, Dot::StoreAndAdd(probabilities + r * kChunk, low, high, Mul(Load(sums), factor)));
    if (factors[r] != 1.0F) {
      float* const out = state.out + static_cast<std::size_t>(first + r) * width;
      for (int i = 0; i < width; i += 16) Store(out + i, Mul(Load(out + i), factor));
    }
  }
}

template <typename Dot>
void Attend(const AttentionState& state, int begin, int end, KvChunk chunk, KvChunk next) {
  const int width = PadToChunk(state.head_dim);
  const int blocks = (end - begin + Dot::kMaxRows - 1) / Dot::kMaxRows;
  const int block_rows = (end - begin + blocks - 1) / blocks;
  alignas(64) float scores[Dot::kMaxRows * kChunk];
  alignas(64) typename Dot::Input probabilities[Dot::kMaxRows * kChunk];
  int configured = 0;
  for (int first = begin; first < end; first += block_rows) {
    const int n = end - first < block_rows ? end - first : block_rows;
    if (n != configured) Dot::Begin(configured = n);
    const bool fetch = next.keys != nullptr && first == begin;
    TileArgs<typename Dot::Input> t;
    t.x =
        static_cast<const typename Dot::Input*>(state.q) + static_cast<std::size_t>(first) * kChunk;
    t.x_chunk = static_cast<std::size_t>(state.queries) * kChunk;
    t.w = chunk.keys;
    t.row_bytes = kIsF32<Dot> ? 128 : 64;
    t.panel_bytes = kIsF32<Dot> ? 64 : static_cast<std::size_t>(width) * 32;
    t.chunks = width / kChunk;
    t.c = scores;
    t.c_stride = kChunk;
    t.add = false;
    t.ahead = fetch ? next.keys - chunk.keys : 0;
    t.turn = PTRDIFF_MAX;
    t.stream = false;
    Dot::Run(n, 2, t);
    SoftmaxBlock<Dot>(state, first, n, scores, probabilities);
    t.x = probabilities;
    t.w = chunk.values;
    t.ahead = fetch ? next.values - chunk.values : 0;
    t.row_bytes = static_cast<std::size_t>(width) * 4;
    t.panel_bytes = 64;
    t.chunks = 1;
    t.c = state.out + static_cast<std::size_t>(first) * width;
    t.c_stride = static_cast<std::size_t>(width);
    t.add = true;
    Dot::Run(n, width / kPanel, t);
  }
  Dot::End();
}

void Finish(const AttentionState& state, int query, float* to) {
  const Vec factor =
      Set1(1.0F / ReduceAdd(Load(state.sums + static_cast<std::size_t>(query) * kPanel)));
  const float* const out = state.out + static_cast<std::size_t>(query) * PadToChunk(state.head_dim);
  for (int i = 0; i < state.head_dim; i += 16) {
    StoreFirst(to + i, state.head_dim - i, Mul(Load(out + i), factor));
  }
}

// Rounded elements i and i + 1 of a row, as they lie in a BF16 pair.
FT_INLINE std::uint32_t Bf16Bits(float rounded) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &rounded, sizeof(bits));
  return bits >> 16;
}

// Where element `dim` of lane `lane` lies, in elements.
template <bool kF32>
FT_INLINE std::size_t KeyOffset(int width, int lane, int dim) {
  if (kF32) return static_cast<std::size_t>(dim) * kChunk + lane;
  return (static_cast<std::size_t>(lane / 16) * (width / 2) + dim / 2) * 32 + lane % 16 * 2 +
         dim % 2;
}
template <bool kF32>
FT_INLINE std::size_t ValueOffset(int width, int lane, int dim) {
  if (kF32) return static_cast<std::size_t>(lane) * width + dim;
  return (static_cast<std::size_t>(lane / 2) * width + dim) * 2 + lane % 2;
}

void StoreKvF32(const float* key, const float* value, int head_dim, KvChunk to, int lane) {
  const int width = PadToChunk(head_dim);
  auto* const keys = reinterpret_cast<float*>(to.keys);
  auto* const values = reinterpret_cast<float*>(to.values);
  for (int i = 0; i < head_dim; ++i) keys[KeyOffset<true>(width, lane, i)] = key[i];
  for (int i = 0; i < head_dim; ++i) values[ValueOffset<true>(width, lane, i)] = value[i];
}

void StoreKvBf16(const float* key, const float* value, int head_dim, KvChunk to, int lane) {
  const int width = PadToChunk(head_dim);
  auto* const keys = reinterpret_cast<std::uint16_t*>(to.keys);
  auto* const values = reinterpret_cast<std::uint16_t*>(to.values);
  for (int i = 0; i < head_dim; i += 16) {
    const int n = head_dim - i < 16 ? head_dim - i : 16;
    float k[16];
    float v[16];
    Store(k, RoundToBf16(LoadFirst(key + i, n)));
    Store(v, RoundToBf16(LoadFirst(value + i, n)));
    for (int j = 0; j < n; j += 2) {  // head_dim is even.
      const std::uint32_t pair = Bf16Bits(k[j]) | (Bf16Bits(k[j + 1]) << 16);
      __builtin_memcpy(keys + KeyOffset<false>(width, lane, i + j), &pair, sizeof(pair));
    }
    for (int j = 0; j < n; ++j) {
      values[ValueOffset<false>(width, lane, i + j)] = static_cast<std::uint16_t>(Bf16Bits(v[j]));
    }
  }
}

template <typename T, bool kF32>
void CopyKv(KvChunk from, int from_lane, int head_dim, KvChunk to, int to_lane) {
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
  for (int i = 0; i < head_dim; ++i) {
    v_to[ValueOffset<kF32>(width, to_lane, i)] = v[ValueOffset<kF32>(width, from_lane, i)];
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
