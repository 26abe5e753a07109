#pragma once

// Dot products on tiles (AMX BF16), over a policy `Ops` that is the hardware's instructions or the
// emulation that tests run. Include after a vec_*.h.
//
// A tile product takes the 32 inputs of a chunk in ascending order for each output, so a row's bits
// do not depend on how many rows are in the tile.

#include "core/backend/cpu/amx/tile_shapes.h"
#include "core/backend/cpu/dot.h"

namespace foretoken::cpu::FT_ISA {
namespace {

/// Tiles: sums 0..3, inputs 4 and 5, weights 6 and 7. Up to 16 rows use one input tile and four
/// panels; up to 32 use two input tiles and two panels.
template <typename Ops, typename Step>
struct TileDot : Step {
  using Input = typename Step::Input;
  static constexpr int kMaxRows = 32;
  static constexpr int kGroupPanels = 4;
  static_assert(sizeof(Input) == 2);

  static int Panels(int rows) { return rows <= 16 ? 4 : 2; }

  static void Begin(int rows) {
    const auto top = static_cast<std::uint8_t>(rows < 16 ? rows : 16);
    const auto rest = static_cast<std::uint8_t>(rows <= 16 ? top : rows - 16);
    Ops::Configure({{top, top, rest, rest, top, rest, 16, 16}, {64, 64, 64, 64, 64, 64, 64, 64}});
  }
  static void End() { Ops::Release(); }

  static void Run(int rows, int panels, TileArgs<Input> t) {
    const int group = t.stream ? 1 : Panels(rows);
    while (panels > 0) {
      const int count = panels < group ? panels : group;
      if (rows <= 16) {
        OneRowTile(count, t);
      } else {
        TwoRowTiles(count, t);
      }
      panels -= count;
      t.w += count * t.panel_bytes;
      t.c += count * kPanel;
    }
  }

 private:
  template <int kTile>
  static FT_INLINE void LoadSum(const TileArgs<Input>& t, const float* c) {
    if (t.add) {
      Ops::template Load<kTile>(c, t.c_stride * sizeof(float));
    } else {
      Ops::template Zero<kTile>();
    }
  }

  static FT_INLINE void FetchAhead(const TileArgs<Input>& t, const char* w) {
    if (t.ahead == 0) return;
    for (int row = 0; row < 16; ++row) Prefetch(w + row * t.row_bytes + t.ahead);
  }

  // sum `kSum` += inputs in tile 4 x the panel at `w`, by way of tile `kWeights`.
  template <int kSum, int kWeights>
  static FT_INLINE void Multiply(const TileArgs<Input>& t, const char* w) {
    Ops::template Load<kWeights>(w, t.row_bytes);
    FetchAhead(t, w);
    Ops::template MultiplyBf16<kSum, 4, kWeights>();
  }

  static void OneRowTile(int panels, const TileArgs<Input>& t) {
    LoadSum<0>(t, t.c);
    if (panels > 1) LoadSum<1>(t, t.c + kPanel);
    if (panels > 2) LoadSum<2>(t, t.c + 2 * kPanel);
    if (panels > 3) LoadSum<3>(t, t.c + 3 * kPanel);
    const Input* x = t.x;
    const char* w = t.w;
    for (int chunk = 0; chunk < t.chunks; ++chunk) {
      Ops::template Load<4>(x, kChunk * sizeof(Input));
      Multiply<0, 6>(t, w);
      if (panels > 1) Multiply<1, 7>(t, w + t.panel_bytes);
      if (panels > 2) Multiply<2, 6>(t, w + 2 * t.panel_bytes);
      if (panels > 3) Multiply<3, 7>(t, w + 3 * t.panel_bytes);
      x += t.x_chunk;
      w += 16 * t.row_bytes;
    }
    const std::size_t stride = t.c_stride * sizeof(float);
    Ops::template Store<0>(t.c, stride);
    if (panels > 1) Ops::template Store<1>(t.c + kPanel, stride);
    if (panels > 2) Ops::template Store<2>(t.c + 2 * kPanel, stride);
    if (panels > 3) Ops::template Store<3>(t.c + 3 * kPanel, stride);
  }

  // Sums 0 and 1 are the first 16 rows of the two panels, 2 and 3 the rest.
  static void TwoRowTiles(int panels, const TileArgs<Input>& t) {
    float* const lower = t.c + 16 * t.c_stride;
    LoadSum<0>(t, t.c);
    LoadSum<2>(t, lower);
    if (panels > 1) LoadSum<1>(t, t.c + kPanel);
    if (panels > 1) LoadSum<3>(t, lower + kPanel);
    const Input* x = t.x;
    const char* w = t.w;
    for (int chunk = 0; chunk < t.chunks; ++chunk) {
      Ops::template Load<4>(x, kChunk * sizeof(Input));
      Ops::template Load<5>(x + 16 * kChunk, kChunk * sizeof(Input));
      Multiply<0, 6>(t, w);
      Ops::template MultiplyBf16<2, 5, 6>();
      if (panels > 1) {
        Multiply<1, 7>(t, w + t.panel_bytes);
        Ops::template MultiplyBf16<3, 5, 7>();
      }
      x += t.x_chunk;
      w += 16 * t.row_bytes;
    }
    const std::size_t stride = t.c_stride * sizeof(float);
    Ops::template Store<0>(t.c, stride);
    Ops::template Store<2>(lower, stride);
    if (panels > 1) Ops::template Store<1>(t.c + kPanel, stride);
    if (panels > 1) Ops::template Store<3>(lower + kPanel, stride);
  }
};

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
