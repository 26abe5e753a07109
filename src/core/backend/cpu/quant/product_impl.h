#pragma once

// Products of quantised rows and packed panels. Include after a lanes_*.h and a dots_*.h.

#include "core/backend/cpu/quant/block_impl.h"
#include "core/backend/cpu/quant/panels_impl.h"

namespace foretoken::cpu::FT_ISA {
namespace {

// Quantising inputs.

void QuantizeInputs(const float* x, RowBlock* to) {
  to->scale = QuantizeBlock<kLargest8>(x, to->values);
  std::int32_t sums[2];
  SumHalves(to->values, sums);
  to->minus_halves[0] = -sums[0];
  to->minus_halves[1] = -sums[1];
  to->minus_sum = -sums[0] - sums[1];
}

void Quantize(const QuantizeTask& task) {
  const std::ptrdiff_t blocks = task.inputs / kInputBlock;
  for (int row = task.row_begin; row < task.row_end; ++row) {
    const int group = row / kRowGroup * kRowGroup;
    const int in_group = task.rows - group < kRowGroup ? task.rows - group : kRowGroup;
    const float* const x = task.x + row * std::ptrdiff_t{task.inputs};
    RowBlock* const to = task.to + group * blocks + (row - group);
    for (std::ptrdiff_t b = 0; b < blocks; ++b) {
      QuantizeInputs(x + b * kInputBlock, to + b * in_group);
    }
  }
}

// When weights are fetched ahead.
enum class FetchesAhead {
  /// Not where the few operations of one row (two of the widest codes) let the processor run ahead
  /// of itself: its own fetching is faster then (Zen 4, weights in memory: one row of Q8_0 35 GB/s
  /// against 23; two rows of Q4_0 25 against 33, eight of Q8_0 13 against 23).
  kForSeveralRows,
  /// Intel's processors do not run ahead so far (lab/performance).
  kAlways
};
template <typename Form, FetchesAhead kWhen>
constexpr bool Fetches(int rows) {
  return kWhen == FetchesAhead::kAlways || rows * 256 > Form::kCodeBytes;
}

// Whether the codes of a block are loaded before all else, where compilers do not choose so well
// (GCC 12): those in more than four vectors in the order in which they lie (one row of Q6_K from
// memory 34 GB/s, not 31), those of 8 bits once for two or three rows, not for each (140 and 160
// GMAC/s in cache, not 115).
template <typename Form>
constexpr bool LoadsFirst(int rows) {
  if (Form::kStoredBits == 8) return rows == 2 || rows == 3;
  return rows == 1 && Form::kStoredBits > 4;
}

constexpr int Log2(int power) { return 31 - __builtin_clz(static_cast<unsigned>(power)); }

// What a sum of products starts from, so that what codes are too large by is taken off.
template <typename F>
FT_INLINE Ints StartOf(const std::int32_t* minus_sum) {
  if constexpr (F::kOffset == 0 || !kCodesAsTheyAre<F::kBits>) {
    return ZeroInts();
  } else {
    return ShiftLeft<Log2(F::kOffset)>(BroadcastInt(minus_sum));
  }
}

// What a block of inputs gives for kDot rows from `x` on, but for the scale of the inputs.
template <WeightFormat kFormat, int kDot, typename GroupSteps>
FT_INLINE void BlockOf(const GroupSteps* steps, const Floats* scales, const RowBlock* x,
                       Floats* scaled) {
  using F = Factors<kFormat>;
  constexpr int kGroups = F::Form::kGroups;
#pragma GCC unroll 2
  for (int g = 0; g < kGroups; ++g) {
    Ints sums[kDot];
#pragma GCC unroll 16
    for (int r = 0; r < kDot; ++r) {
      sums[r] = StartOf<F>(kGroups == 1 ? &x[r].minus_sum : &x[r].minus_halves[g]);
    }
    Dot<F::kBits, 8 / kGroups, kDot>(steps[g], x->values + 16 * g, sizeof(RowBlock), sums);
#pragma GCC unroll 16
    for (int r = 0; r < kDot; ++r) {
      const Floats product = ToFloats(sums[r]);
      scaled[r] = g == 0 ? Mul(product, scales[0]) : Fma(product, scales[g], scaled[r]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kDot; ++r) TakeLess<kFormat>(x[r], scales, &scaled[r]);
}

template <WeightFormat kFormat, int kRows, FetchesAhead kWhen>
void PanelRowsProduct(const PanelArgs& t) {
  using F = Factors<kFormat>;
  using Form = typename F::Form;
  constexpr int kGroups = Form::kGroups;
  constexpr int kDot = kDotRows<kRows>;
  Floats sums[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) sums[r] = ZeroFloats();
  const std::byte* stretch = t.weights;
  const RowBlock* x = t.x;
  alignas(64) float scale_floats[kStretchBlocks * Form::kScales * kPanel];
  for (int begin = 0; begin < t.blocks; begin += kStretchBlocks) {
    const int blocks = t.blocks - begin < kStretchBlocks ? t.blocks - begin : kStretchBlocks;
    UnpackScales<Form::kScaleForm>(stretch, blocks, scale_floats);
    const std::byte* w = stretch + blocks * Form::kScaleBytes;
    for (int b = 0; b < blocks; ++b) {
      if constexpr (Fetches<Form, kWhen>(kRows)) FetchAhead<Form>(stretch + t.ahead, b);
      Ints codes[8];
      F::template Unpack<LoadsFirst<Form>(kRows)>(w, codes);
      w += Form::kCodeBytes;
      Steps<F::kBits, 8 / kGroups> steps[kGroups];
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) {
        Prepare(codes + 8 / kGroups * g, &steps[g]);
      }
      Floats scales[Form::kScales];
#pragma GCC unroll 4
      for (int i = 0; i < Form::kScales; ++i) {
        scales[i] = LoadFloats(scale_floats + (b * Form::kScales + i) * kPanel);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; r += kDot) {
        Floats scaled[kDot];
        BlockOf<kFormat, kDot>(steps, scales, x + r, scaled);
#pragma GCC unroll 16
        for (int i = 0; i < kDot; ++i) {
          sums[r + i] = Fma(scaled[i], BroadcastFloat(&x[r + i].scale), sums[r + i]);
        }
      }
      x += t.x_stride;
    }
    stretch += Form::kStretchBytes;
  }
  alignas(64) float floats[kRows * kPanel];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) StoreFloats(floats + r * kPanel, sums[r]);
  Finish(t, kRows, floats);
}

template <WeightFormat kFormat, FetchesAhead kWhen, int kRows = 1>
FT_INLINE void RunPanel(int rows, const PanelArgs& t) {
  if constexpr (kRows < kMostRows) {
    if (rows != kRows) return RunPanel<kFormat, kWhen, kRows + 1>(rows, t);
  }
  PanelRowsProduct<kFormat, kRows, kWhen>(t);
}

template <FetchesAhead kWhen>
struct ProductsFetching {
  template <WeightFormat kFormat>
  static void Run(const QuantProductTask& task) {
    WalkPanels(task, kRowGroup, [](int rows, PanelArgs t) {
      for (int r = 0; r < rows; r += kMostRows) {
        RunPanel<kFormat, kWhen>(rows - r < kMostRows ? rows - r : kMostRows, t);
        t.x += kMostRows;
        t.y += kMostRows * t.y_stride;
      }
    });
  }
};
using VectorProducts = ProductsFetching<FetchesAhead::kForSeveralRows>;

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
