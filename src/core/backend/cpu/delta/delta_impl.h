#pragma once

// What heads of gated delta layers compute, in the order that docs/develop/arithmetic.md fixes.
// Include after kernels_impl.h.

#include "core/backend/cpu/kernels_impl.h"

namespace foretoken::cpu::FT_ISA {
namespace {

void Convolve(const float* const* inputs, const float* taps, std::ptrdiff_t stride, int count,
              int width, float* out) {
  for (int i = 0; i < width; i += 16) {
    const int n = width - i;
    Vec sum = Set1(0.0F);
    for (int tap = 0; tap < count; ++tap) {
      if (inputs[tap] == nullptr) continue;
      sum = Fma(LoadFirst(taps + tap * stride + i, n), LoadFirst(inputs[tap] + i, n), sum);
    }
    StoreFirst(out + i, n, TimesSigmoid(sum, sum));
  }
}

FT_INLINE float Product(const float* x, const float* y, int width) {
  Vec sums = Set1(0.0F);
  for (int i = 0; i < width; i += 16) {
    const int n = width - i;
    sums = Fma(LoadFirst(x + i, n), LoadFirst(y + i, n), sums);
  }
  return ReduceAdd(sums);
}

void MakeUnit(float factor, int width, float* x) {
  const Vec inverse = Set1(1.0F / __builtin_sqrtf(Product(x, x, width) + kUnitEpsilon));
  for (int i = 0; i < width; i += 16) {
    const int n = width - i;
    StoreFirst(x + i, n, Mul(Mul(LoadFirst(x + i, n), inverse), Set1(factor)));
  }
}

// Columns of the state are independent: kVectors of them at once, of which the last may be cut.
template <int kVectors>
FT_INLINE void ReadColumns(const DeltaRowTask& task, float along, int column) {
  const int n = task.value_dim - column - 16 * (kVectors - 1);
  Vec remembered[kVectors];
  Vec read[kVectors];
  for (int v = 0; v < kVectors; ++v) remembered[v] = read[v] = Set1(0.0F);
  const float* state = task.state + column;
  for (int i = 0; i < task.key_dim; ++i, state += task.value_dim) {
    const Vec key = Set1(task.key[i]);
    const Vec query = Set1(task.query[i]);
    for (int v = 0; v < kVectors; ++v) {
      const Vec s = v + 1 < kVectors ? Load(state + 16 * v) : LoadFirst(state + 16 * v, n);
      remembered[v] = Fma(s, key, remembered[v]);
      read[v] = Fma(s, query, read[v]);
    }
  }
  const Vec decay = Set1(task.decay);
  for (int v = 0; v < kVectors; ++v) {
    const int at = column + 16 * v;
    const int here = v + 1 < kVectors ? 16 : n;
    const Vec apart = Sub(LoadFirst(task.value + at, here), Mul(decay, remembered[v]));
    const Vec written = Mul(apart, Set1(task.write));
    StoreFirst(task.value + at, here, written);
    StoreFirst(task.out + at, here, Fma(Set1(along), written, Mul(decay, read[v])));
  }
}

void ReadState(const DeltaRowTask& task) {
  const float along = Product(task.query, task.key, task.key_dim);
  int column = 0;
  for (; task.value_dim - column > 16; column += 32) ReadColumns<2>(task, along, column);
  if (column < task.value_dim) ReadColumns<1>(task, along, column);
}

void ApplyToState(const float* key, const float* written, float decay, int key_dim, int value_dim,
                  float* state) {
  for (int i = 0; i < key_dim; ++i, state += value_dim) {
    const Vec along = Set1(key[i]);
    for (int j = 0; j < value_dim; j += 16) {
      const int n = value_dim - j;
      const Vec kept = Mul(Set1(decay), LoadFirst(state + j, n));
      StoreFirst(state + j, n, Fma(along, LoadFirst(written + j, n), kept));
    }
  }
}

constexpr DeltaKernels kDeltaKernels = {Convolve, MakeUnit, ReadState, ApplyToState};

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
