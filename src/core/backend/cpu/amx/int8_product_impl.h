#pragma once

// Products of many quantised rows and packed panels on tiles (AMX INT8), over a policy `Tiles` that
// is the hardware's instructions or the emulation that tests run. Include after a lanes_*.h.
//
// Every group of inputs has scales of its own, so a tile product is as deep as a group: 32 or 16
// inputs of up to 16 rows, by 16 outputs. Its integers are stored, and vectors scale and add them
// as docs/develop/arithmetic.md says, a row and 16 outputs at a time.

#include "core/backend/cpu/amx/tile_shapes.h"
#include "core/backend/cpu/quant/panels_impl.h"

namespace foretoken::cpu::FT_ISA {
namespace {

// Fewer rows are left to vectors: 12 of Q4_K took 0.89 of what tiles took, 15 took 0.92, 16 took
// 1.06 times as long; of Q8_0 they hardly differ (lab/performance).
constexpr int kFewestTileRows = kRowGroup;
// Rows for which a stretch is unpacked once. What it takes for them, 34 KB at most (their inputs
// 24, their sums 4, the weights 6), stays in L1.
constexpr int kMostTileRows = 4 * kRowGroup;

// The weights of a stretch: step s of a block is row s of a tile.
template <WeightFormat kFormat>
struct Stretch {
  alignas(64) std::byte values[kStretchBlocks][8][64];
  alignas(64) float scales[kStretchBlocks][PackedForm<kFormat>::kScales][kPanel];
};

// What tile products give for a block of inputs.
template <int kGroups>
struct BlockSums {
  alignas(64) std::int32_t groups[kGroups][kRowGroup][kPanel];
};

// Codes that are kOffset too large, as the signed values that they stand for.
template <int kOffset>
FT_INLINE void StoreValues(const Ints& codes, std::byte* to) {
  typedef std::uint8_t Bytes __attribute__((vector_size(64)));
  static_assert(sizeof(Ints) == sizeof(Bytes));
  Bytes bytes;
  __builtin_memcpy(&bytes, &codes, sizeof(bytes));
  bytes -= static_cast<std::uint8_t>(kOffset);
  __builtin_memcpy(to, &bytes, sizeof(bytes));
}

template <WeightFormat kFormat>
void UnpackStretch(const std::byte* from, int blocks, Stretch<kFormat>* to) {
  using F = Factors<kFormat>;
  using Form = typename F::Form;
  UnpackScales<Form::kScaleForm>(from, blocks, &to->scales[0][0][0]);
  const std::byte* w = from + blocks * Form::kScaleBytes;
  for (int b = 0; b < blocks; ++b) {
    Ints codes[8];
    F::template Unpack<false>(w, codes);
#pragma GCC unroll 8
    for (int s = 0; s < 8; ++s) StoreValues<F::kOffset>(codes[s], to->values[b][s]);
    w += Form::kCodeBytes;
  }
}

// Tiles: sums 0 and 1 of sixteen rows, 2 and 3 of the fewer rows that are left; inputs 4 of the
// former, 5 of the latter; weights 6 and 7. Of sums and weights those of even and of odd products,
// so that none has to wait until the one before it is stored.
template <WeightFormat kFormat>
constexpr TileShapes ShapesFor(int rows) {
  constexpr std::uint8_t kDepth = PackedForm<kFormat>::kCodes.group;
  const auto rest = static_cast<std::uint8_t>(rows % kRowGroup == 0 ? kRowGroup : rows % kRowGroup);
  return {{kRowGroup, kRowGroup, rest, rest, kRowGroup, rest, kDepth / 4, kDepth / 4},
          {64, 64, 64, 64, kDepth, kDepth, 64, 64}};
}

// The sums of a group of inputs: kWhole of sixteen rows; kTurn 0 or 1, even or odd products.
template <typename Tiles, bool kWhole, int kTurn>
FT_INLINE void MultiplyGroup(const std::int8_t* x, const std::byte* values, std::int32_t* to) {
  constexpr int kSums = (kWhole ? 0 : 2) + kTurn;
  constexpr int kInputs = kWhole ? 4 : 5;
  constexpr int kWeights = 6 + kTurn;
  Tiles::template Load<kInputs>(x, sizeof(RowBlock));
  Tiles::template Load<kWeights>(values, 64);
  Tiles::template Zero<kSums>();
  Tiles::template MultiplyInt8<kSums, kInputs, kWeights>();
  Tiles::template Store<kSums>(to, sizeof(float) * kPanel);
}

// The sums of block `b` of a stretch, for rows that lie side by side from `x` on.
template <WeightFormat kFormat, typename Tiles, bool kWhole>
FT_INLINE void MultiplyBlock(const Stretch<kFormat>& w, int b, const RowBlock* x,
                             BlockSums<PackedForm<kFormat>::kGroups>* to) {
  const std::byte* const values = w.values[b][0];
  std::int32_t* const first = to->groups[0][0];
  if constexpr (PackedForm<kFormat>::kGroups == 2) {
    MultiplyGroup<Tiles, kWhole, 0>(x->values, values, first);
    MultiplyGroup<Tiles, kWhole, 1>(x->values + 16, w.values[b][4], to->groups[1][0]);
  } else if (b % 2 == 0) {
    MultiplyGroup<Tiles, kWhole, 0>(x->values, values, first);
  } else {
    MultiplyGroup<Tiles, kWhole, 1>(x->values, values, first);
  }
}

// Adds what a block gives for row `r`.
template <WeightFormat kFormat>
FT_INLINE void AddRow(const BlockSums<PackedForm<kFormat>::kGroups>& products, const Floats* scales,
                      int r, const RowBlock& x, Floats* sum) {
  Floats scaled = Mul(ToFloats(LoadInts(products.groups[0][r])), scales[0]);
  if constexpr (PackedForm<kFormat>::kGroups == 2) {
    scaled = Fma(ToFloats(LoadInts(products.groups[1][r])), scales[1], scaled);
  }
  TakeLess<kFormat>(x, scales, &scaled);
  *sum = Fma(scaled, BroadcastFloat(&x.scale), *sum);
}

// Adds a stretch to the sums [rows][kPanel] of a group of rows; those of sixteen are in registers
// meanwhile. Tiles are a block ahead of vectors, so that both have something to do. Fetches the
// stretch at `ahead`, unless that is null: here, since all at once would be more than memory takes
// at a time (Zen 4, tiles left out, 8 rows of Q8_0 from memory: 1.4 times one row, not 2.3).
template <WeightFormat kFormat, typename Tiles, bool kWhole>
void AddStretch(const Stretch<kFormat>& w, int blocks, const RowBlock* x, int rows, float* sums,
                const std::byte* ahead) {
  constexpr int kScales = PackedForm<kFormat>::kScales;
  BlockSums<PackedForm<kFormat>::kGroups> products[2];
  Floats kept[kWhole ? kRowGroup : 1];
  if constexpr (kWhole) {
#pragma GCC unroll 16
    for (int r = 0; r < kRowGroup; ++r) kept[r] = LoadFloats(sums + r * kPanel);
  }
  MultiplyBlock<kFormat, Tiles, kWhole>(w, 0, x, &products[0]);
  for (int b = 0; b < blocks; ++b, x += rows) {
    if (b + 1 < blocks) {
      MultiplyBlock<kFormat, Tiles, kWhole>(w, b + 1, x + rows, &products[(b + 1) % 2]);
    }
    if (ahead != nullptr) FetchAhead<PackedForm<kFormat>>(ahead, b);
    Floats scales[kScales];
#pragma GCC unroll 4
    for (int i = 0; i < kScales; ++i) scales[i] = LoadFloats(w.scales[b][i]);
    if constexpr (kWhole) {
#pragma GCC unroll 16
      for (int r = 0; r < kRowGroup; ++r) {
        AddRow<kFormat>(products[b % 2], scales, r, x[r], &kept[r]);
      }
    } else {
      for (int r = 0; r < rows; ++r) {
        Floats sum = LoadFloats(sums + r * kPanel);
        AddRow<kFormat>(products[b % 2], scales, r, x[r], &sum);
        StoreFloats(sums + r * kPanel, sum);
      }
    }
  }
  if constexpr (kWhole) {
#pragma GCC unroll 16
    for (int r = 0; r < kRowGroup; ++r) StoreFloats(sums + r * kPanel, kept[r]);
  }
}

// One panel and up to kMostTileRows rows.
template <WeightFormat kFormat, typename Tiles>
void TilePanel(const PanelArgs& t, int rows) {
  Stretch<kFormat> w;
  alignas(64) float sums[kMostTileRows * kPanel];
  for (int r = 0; r < rows; ++r) StoreFloats(sums + r * kPanel, ZeroFloats());
  const std::byte* from = t.weights;
  for (int begin = 0; begin < t.blocks; begin += kStretchBlocks) {
    const int blocks = t.blocks - begin < kStretchBlocks ? t.blocks - begin : kStretchBlocks;
    UnpackStretch<kFormat>(from, blocks, &w);
    for (int row = 0; row < rows; row += kRowGroup) {
      const int count = rows - row < kRowGroup ? rows - row : kRowGroup;
      const RowBlock* const x = t.x + std::ptrdiff_t{row} * t.blocks + begin * count;
      const std::byte* const ahead = row == 0 ? from + t.ahead : nullptr;
      if (count == kRowGroup) {
        AddStretch<kFormat, Tiles, true>(w, blocks, x, kRowGroup, sums + row * kPanel, ahead);
      } else {
        AddStretch<kFormat, Tiles, false>(w, blocks, x, count, sums + row * kPanel, ahead);
      }
    }
    from += PackedForm<kFormat>::kStretchBytes;
  }
  Finish(t, rows, sums);
}

// Products of fewer than kFewestTileRows rows are those of another set, and so is quantising.
template <typename Tiles, const QuantKernels& (*kSetOfFewRows)()>
struct TileProducts {
  static void Quantize(const QuantizeTask& task) { kSetOfFewRows().quantize(task); }

  template <WeightFormat kFormat>
  static void Run(const QuantProductTask& task) {
    if (task.rows < kFewestTileRows) {
      kSetOfFewRows().product[static_cast<std::size_t>(kFormat)](task);
      return;
    }
    Tiles::Configure(ShapesFor<kFormat>(task.rows));
    WalkPanels(task, kMostTileRows,
               [](int rows, const PanelArgs& t) { TilePanel<kFormat, Tiles>(t, rows); });
    Tiles::Release();
  }
};

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
