#pragma once

// Dot products of packed rows with weight panels in the registers of one instruction set. Include
// after a vec_*.h.
//
// Batch invariance: every output has one accumulator that takes its inputs in ascending order, one
// operation per step, whatever the numbers of rows and panels computed with it.

#include "core/backend/cpu/kernels.h"

namespace foretoken::cpu::FT_ISA {
namespace {

// Bytes that weights are fetched ahead of use.
constexpr std::ptrdiff_t kAhead = 4096;

template <typename Input>
struct TileArgs {
  const Input* x;           // [chunks][rows of the packing][kChunk]
  std::size_t x_chunk;      // Elements from one chunk to the next.
  const char* w;            // The first panel.
  std::size_t row_bytes;    // From one step's 16 outputs to the next's.
  std::size_t panel_bytes;  // From one panel to the next.
  int chunks;
  float* c;  // [rows, panels * kPanel]
  std::size_t c_stride;
  bool add;  // Start from what `c` holds, else from zero.
  // Bytes from what is used to what is fetched for later; 0: nothing. From byte `turn` of a panel
  // on, what follows is fetched already, as the panel beside it, and it lies that much further.
  std::ptrdiff_t ahead;
  std::ptrdiff_t turn;
  bool stream;  // Panels come from memory, once: reading them is the limit if rows are few.
};

// Weights and inputs in float: one input a step.
struct F32Step {
  using Input = float;
  static constexpr int kInputs = 1;
  using Weight = Vec;
  using Value = Vec;
  static FT_INLINE Weight LoadWeight(const char* p) {
    return Load(reinterpret_cast<const float*>(p));
  }
  static FT_INLINE Value LoadValue(const float* x) { return Set1(*x); }
  static FT_INLINE Vec Step(Vec sum, Weight w, Value x) { return Fma(w, x, sum); }
  static FT_INLINE void StoreInputs(float* to, Vec low, Vec high) {
    Store(to, low);
    Store(to + 16, high);
  }
  // Also adds what was stored, rounded as it is, to 16 partial sums.
  static FT_INLINE Vec StoreAndAdd(float* to, Vec low, Vec high, Vec sums) {
    StoreInputs(to, low, high);
    return Add(sums, Add(low, high));
  }
};

// Weights in BF16, widened: two inputs a step, the even one first. Inputs are rounded to BF16 and
// kept as floats.
struct WideBf16Step {
  using Input = float;
  static constexpr int kInputs = 2;
  struct Pair {
    Vec even;
    Vec odd;
  };
  using Weight = Pair;
  using Value = Pair;
  static FT_INLINE Weight LoadWeight(const char* p) {
    Pair w;
    LoadBf16Pairs(p, &w.even, &w.odd);
    return w;
  }
  static FT_INLINE Value LoadValue(const float* x) { return {Set1(x[0]), Set1(x[1])}; }
  static FT_INLINE Vec Step(Vec sum, Weight w, Value x) {
    return Fma(w.odd, x.odd, Fma(w.even, x.even, sum));
  }
  static FT_INLINE void StoreInputs(float* to, Vec low, Vec high) {
    Store(to, RoundToBf16(low));
    Store(to + 16, RoundToBf16(high));
  }
  static FT_INLINE Vec StoreAndAdd(float* to, Vec low, Vec high, Vec sums) {
    StoreInputs(to, low, high);
    return Add(sums, Add(Load(to), Load(to + 16)));
  }
};

// R rows x P panels in registers.
template <typename Step, int R, int P>
void Tile(const TileArgs<typename Step::Input>& t) {
  constexpr int kSteps = kChunk / Step::kInputs;
  Vec sum[R][P];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      sum[r][p] = t.add ? Load(t.c + r * t.c_stride + p * kPanel) : Set1(0.0F);
    }
  }
  const char* w = t.w;
  const typename Step::Input* x = t.x;
  for (int chunk = 0; chunk < t.chunks; ++chunk) {
    const char* const later =
        w + t.ahead + (w - t.w < t.turn ? 0 : (P - 1) * static_cast<std::ptrdiff_t>(t.panel_bytes));
#pragma GCC unroll 4
    for (int step = 0; step < kSteps; ++step) {
      typename Step::Weight weight[P];
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        weight[p] = Step::LoadWeight(w + p * t.panel_bytes);
        if (t.ahead != 0) Prefetch(later + step * t.row_bytes + p * t.panel_bytes);
      }
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const typename Step::Value value = Step::LoadValue(x + r * kChunk + step * Step::kInputs);
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) sum[r][p] = Step::Step(sum[r][p], weight[p], value);
      }
      w += t.row_bytes;
    }
    x += t.x_chunk;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) Store(t.c + r * t.c_stride + p * kPanel, sum[r][p]);
  }
}

template <typename Step, int R, int P, typename Input>
int RunTiles(int panels, TileArgs<Input>* t) {
  int done = 0;
  for (; done + P <= panels; done += P) {
    Tile<Step, R, P>(*t);
    t->w += P * t->panel_bytes;
    t->c += P * kPanel;
  }
  return done;
}

// The dot products of an instruction set whose accumulators are vectors. `Tiles` says which shapes
// are fastest: kMaxRows at once, Panels(rows) together; up to kStreamRows, where weights come from
// memory, kStreamPanels; kGroupPanels from one block of rows to the next, at most.
template <typename Step_, typename Tiles = VectorTiles>
struct VectorDot : Step_ {
  using Step = Step_;
  using Input = typename Step::Input;
  static constexpr int kMaxRows = Tiles::kMaxRows;
  static constexpr int kGroupPanels = Tiles::kGroupPanels;

  static int Panels(int rows) { return Tiles::Panels(rows); }
  static void Begin(int) {}
  static void End() {}

  template <int R = 1>
  static void Run(int rows, int panels, TileArgs<Input> t) {
    if constexpr (R <= kMaxRows) {
      if (rows != R) {
        Run<R + 1>(rows, panels, t);
        return;
      }
      // Few panels at a time are few streams from memory, which the machine reads fastest.
      if constexpr (R <= Tiles::kStreamRows) {
        if (t.stream) {
          panels -= RunTiles<Step, R, Tiles::kStreamPanels>(panels, &t);
          if constexpr (Tiles::kStreamPanels > 1) RunTiles<Step, R, 1>(panels, &t);
          return;
        }
      }
      constexpr int kPanels = Tiles::Panels(R);
      panels -= RunTiles<Step, R, kPanels>(panels, &t);
      if constexpr (kPanels > 4) panels -= RunTiles<Step, R, 4>(panels, &t);
      if constexpr (kPanels > 2) panels -= RunTiles<Step, R, 2>(panels, &t);
      if constexpr (kPanels > 1) RunTiles<Step, R, 1>(panels, &t);
    }
  }
};

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
