#pragma once

// Attention over one chunk of 32 keys. Include after a vec_*.h.

#include "base/numbers/integers.h"
#include "core/backend/cpu/attention/plain_kv_impl.h"
#include "core/backend/cpu/attention/q8_kv_impl.h"

namespace foretoken::cpu::FT_ISA {
namespace {

// What few models do to the scores of a query, away from the loops that all of them run.
__attribute__((noinline)) void CapAndHide(const AttentionState& state, int query, float* scores) {
  for (int i = 0; state.cap != 0 && i < kChunk; i += 16) {
    Store(scores + i, Capped(Load(scores + i), Set1(state.cap_inverse), Set1(state.cap)));
  }
  for (int i = state.anchors; i < state.hidden[query]; ++i) scores[i] = -__builtin_inff();
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
    if (state.cap != 0 || state.hidden[first + r] > 0) CapAndHide(state, first + r, row);
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
  // Sixteen queries at once; those behind the last keep their maxima.
  for (int r = count; r < kRoom; ++r) now[r] = kMinusInfinity;
  for (int r = 0; r < count; r += 16) {
    float* const maxima = state.maxima + first + r;
    const Vec before = Load(maxima);
    const Vec after = Max(Mul(Load(now + r), scale), before);
    Store(maxima, after);
    Store(now + r, after);
    Store(factors + r, Exp2<true>(Sub(before, after)));
  }
  const int width = PadToChunk(state.value_dim);
  for (int r = 0; r < count; ++r) {
    const Vec shift = Set1(-now[r]);
    const Vec low = Exp2<kIsF32<Dot>>(Fma(Load(scores + r * kChunk), scale, shift));
    const Vec high = Exp2<kIsF32<Dot>>(Fma(Load(scores + r * kChunk + 16), scale, shift));
    float* const sums = state.sums + Size(first + r) * kPanel;
    const Vec factor = Set1(factors[r]);
    Store(sums, Dot::StoreAndAdd(probabilities + r * kChunk, low, high, Mul(Load(sums), factor)));
    if (factors[r] != 1.0F) {
      float* const out = state.out + Size(first + r) * width;
      for (int i = 0; i < width; i += 16) Store(out + i, Mul(Load(out + i), factor));
    }
  }
}

// `Kv` says how keys and values lie and multiplies them: PlainKv or Q8Kv.
template <typename Kv>
void Attend(const AttentionState& state, int begin, int end, KvChunk chunk, KvChunk next) {
  using Dot = typename Kv::Dot;
  const int blocks = (end - begin + Dot::kMaxRows - 1) / Dot::kMaxRows;
  const int block_rows = (end - begin + blocks - 1) / blocks;
  alignas(64) float scores[Dot::kMaxRows * kChunk];
  alignas(64) typename Dot::Input probabilities[Dot::kMaxRows * kChunk];
  int configured = 0;
  for (int first = begin; first < end; first += block_rows) {
    const int n = end - first < block_rows ? end - first : block_rows;
    if (n != configured) Dot::Begin(configured = n);
    const KvChunk fetched = first == begin ? next : KvChunk{};
    Kv::Scores(state, first, n, chunk, fetched, scores);
    SoftmaxBlock<Dot>(state, first, n, scores, probabilities);
    Kv::AddValues(state, first, n, probabilities, chunk, fetched);
  }
  Dot::End();
}

template <typename Kv>
constexpr AttentionKernels AttentionOf() {
  return {Kv::PackQuery, Attend<Kv>, Kv::Keep, Kv::Copy, Kv::ValuesOfKeys};
}

void Finish(const AttentionState& state, int query, float* to) {
  const Vec factor = Set1(1.0F / ReduceAdd(Load(state.sums + Size(query) * kPanel)));
  const float* const out = state.out + Size(query) * PadToChunk(state.value_dim);
  for (int i = 0; i < state.value_dim; i += 16) {
    StoreFirst(to + i, state.value_dim - i, Mul(Load(out + i), factor));
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
