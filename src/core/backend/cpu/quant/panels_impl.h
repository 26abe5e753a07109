#pragma once

// What products on vectors and on tiles share: the walk over panels, what is fetched ahead, what a
// block is less by, and writing sums. Include after a lanes_*.h.

#include "base/numbers/integers.h"
#include "core/backend/cpu/quant/forms_impl.h"

namespace foretoken::cpu::FT_ISA {
namespace {

// Bytes that weights are fetched ahead of use, into L2: into L1, or less far, is slower.
constexpr std::ptrdiff_t kAheadBytes = 32768;

// One panel and some rows.
struct PanelArgs {
  const std::byte* weights;
  std::ptrdiff_t ahead;  // From a stretch to the one that is fetched meanwhile.
  const RowBlock* x;
  int x_stride;  // Row blocks from one block of inputs to the next.
  int blocks;
  float* y;
  std::ptrdiff_t y_stride;
  int outputs;  // How many outputs of the panel are written.
  bool add;
};

// The share of block `b` in fetching a stretch.
template <typename Form>
FT_INLINE void FetchAhead(const std::byte* stretch, int b) {
  // Lines of a block of inputs, those of scales among them.
  constexpr int kLines = static_cast<int>(Form::kStretchBytes / kStretchBlocks + 63) / 64;
#pragma GCC unroll 16
  for (int line = 0; line < kLines; ++line) {
    Prefetch(stretch + 64 * (b * kLines + line));
  }
}

// Takes off what the weights of a block are less by, for the inputs `x`.
template <WeightFormat kFormat>
FT_INLINE void TakeLess(const RowBlock& x, const Floats* scales, Floats* scaled) {
  using Form = PackedForm<kFormat>;
  constexpr int kGroups = Form::kGroups;
  if constexpr (Form::kCodes.has_less) {
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      const std::int32_t* const minus = kGroups == 1 ? &x.minus_sum : &x.minus_halves[g];
      *scaled = Fma(ToFloats(BroadcastInt(minus)), scales[kGroups + g], *scaled);
    }
  }
}

// Writes the sums of `rows` rows, [rows][kPanel] floats. Not inlined: it runs once a panel.
__attribute__((noinline)) void Finish(const PanelArgs& t, int rows, float* sums) {
  for (int r = 0; r < rows; ++r, sums += kPanel) {
    float* const y = t.y + r * t.y_stride;
    if (t.outputs == kPanel) {
      StoreFloats(y, OneNan(t.add ? Add(LoadFloats(y), LoadFloats(sums)) : LoadFloats(sums)));
    } else {
      float lanes[kPanel] = {};
      for (int o = 0; t.add && o < t.outputs; ++o) lanes[o] = y[o];
      StoreFloats(lanes,
                  OneNan(t.add ? Add(LoadFloats(lanes), LoadFloats(sums)) : LoadFloats(sums)));
      for (int o = 0; o < t.outputs; ++o) y[o] = lanes[o];
    }
  }
}

// Bytes of the panels that all rows take before the next ones: they stay in L2.
constexpr std::size_t kGroupBytes = 256 << 10;

// What is fetched ahead while a panel is read: what lies kAheadBytes behind, or in its place, where
// that is for the most part behind the last panel, what is read next. To fetch what is not read
// costs as much as to read it: where nothing is known of what follows, it is what is being read.
FT_INLINE std::ptrdiff_t AheadOf(const QuantProductTask& task, int panel) {
  const auto left = static_cast<std::ptrdiff_t>(Size(task.panel_end - panel) * task.panel_bytes);
  if (left > kAheadBytes + static_cast<std::ptrdiff_t>(task.panel_bytes / 2)) return kAheadBytes;
  if (task.next == nullptr) return 0;
  const std::byte* const end = task.weights + Size(task.panel_end) * task.panel_bytes;
  return task.next - end + kAheadBytes;
}

// Calls run(rows, panel) for the panels of a task, each for `rows_at_once` rows and the rest at
// last: whole groups of kRowGroup rows, of which the first ones lie at panel.x.
template <typename Run>
FT_INLINE void WalkPanels(const QuantProductTask& task, int rows_at_once, const Run& run) {
  const int fit = kGroupBytes / task.panel_bytes;
  const int group = task.rows <= rows_at_once || fit < 1 ? 1 : fit;
  PanelArgs t;
  t.blocks = task.inputs / kInputBlock;
  t.y_stride = task.y_stride;
  t.add = task.add;
  for (int begin = task.panel_begin; begin < task.panel_end; begin += group) {
    const int end = begin + group < task.panel_end ? begin + group : task.panel_end;
    for (int row = 0; row < task.rows; row += rows_at_once) {
      const int rows = task.rows - row < rows_at_once ? task.rows - row : rows_at_once;
      t.x = task.x + std::ptrdiff_t{row} * t.blocks;
      t.x_stride = rows < kRowGroup ? rows : kRowGroup;
      for (int panel = begin; panel < end; ++panel) {
        const int first = panel * kPanel;
        t.weights = task.weights + Size(panel) * task.panel_bytes;
        t.ahead = AheadOf(task, panel);
        t.outputs = task.outputs - first < kPanel ? task.outputs - first : kPanel;
        t.y = task.y + row * t.y_stride + first;
        run(rows, t);
      }
    }
  }
}

// A set of kernels, Products::Run<format> of each format among them.
template <typename Products>
constexpr QuantKernels MakeQuantTable(const char* name, void (*quantize)(const QuantizeTask&)) {
  return {
      name,
      quantize,
      {nullptr, nullptr, nullptr, Products::template Run<WeightFormat::kQ8_0>,
       Products::template Run<WeightFormat::kQ4_0>, Products::template Run<WeightFormat::kQ4_1>,
       Products::template Run<WeightFormat::kQ5_0>, Products::template Run<WeightFormat::kQ5_1>,
       Products::template Run<WeightFormat::kQ2_K>, Products::template Run<WeightFormat::kQ3_K>,
       Products::template Run<WeightFormat::kQ4_K>, Products::template Run<WeightFormat::kQ5_K>,
       Products::template Run<WeightFormat::kQ6_K>, Products::template Run<WeightFormat::kIQ4_NL>,
       Products::template Run<WeightFormat::kIQ4_XS>,
       Products::template Run<WeightFormat::kMXFP4>}};
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
