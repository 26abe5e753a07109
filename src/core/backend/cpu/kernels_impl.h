#pragma once

// The operations, written once over the vectors and dot products of an instruction set. Include
// after a vec_*.h.

#include "base/numbers/integers.h"
#include "core/backend/cpu/dot.h"

namespace foretoken::cpu::FT_ISA {
namespace {

// e^x for x <= 88, exactly 0 below -87. Cephes' reduction with a polynomial of degree 6.
FT_INLINE Vec Exp(Vec x) {
  constexpr float kLowest = -87.0F;
  const Vec clamped = Max(x, Set1(kLowest));
  const Vec n = RoundToInteger(Mul(clamped, Set1(1.44269504F)));
  Vec r = Fma(n, Set1(-0.693359375F), clamped);
  r = Fma(n, Set1(2.12194440e-4F), r);
  Vec p = Set1(1.0F / 720);
  p = Fma(p, r, Set1(1.0F / 120));
  p = Fma(p, r, Set1(1.0F / 24));
  p = Fma(p, r, Set1(1.0F / 6));
  p = Fma(p, r, Set1(0.5F));
  p = Fma(p, r, Set1(1.0F));
  p = Fma(p, r, Set1(1.0F));
  return ZeroWhereBelow(TimesPowerOfTwo(p, n), x, kLowest);
}

// 2^x for x <= 127, exactly 0 below -126: the Taylor series of 2^r for |r| <= 1/2, to 5e-5 relative
// (far below the rounding of BF16) or to the last bits of a float.
template <bool kPrecise>
FT_INLINE Vec Exp2(Vec x) {
  constexpr float kLowest = -126.0F;
  const Vec clamped = Max(x, Set1(kLowest));
  const Vec n = RoundToInteger(clamped);
  const Vec r = Sub(clamped, n);
  Vec p = Set1(9.61812911e-3F);
  if constexpr (kPrecise) {
    p = Fma(Set1(1.54035304e-4F), r, Set1(1.33335581e-3F));
    p = Fma(p, r, Set1(9.61812911e-3F));
  }
  p = Fma(p, r, Set1(5.55041087e-2F));
  p = Fma(p, r, Set1(2.40226507e-1F));
  p = Fma(p, r, Set1(6.93147181e-1F));
  p = Fma(p, r, Set1(1.0F));
  return ZeroWhereBelow(TimesPowerOfTwo(p, n), x, kLowest);
}

// Packs one row of `width` floats as row `row` of [chunks][rows][kChunk], padded with zeros.
template <typename Dot>
void PackRow(const float* from, int width, int row, int rows, typename Dot::Input* to) {
  to += Size(row) * kChunk;
  for (int i = 0; i < width; i += kChunk, to += Size(rows) * kChunk) {
    Dot::StoreInputs(to, LoadFirst(from + i, width - i),
                     width - i > 16 ? LoadFirst(from + i + 16, width - i - 16) : Set1(0.0F));
  }
}

// A panel that reaches beyond the outputs is computed into `spare` and copied.
template <typename Dot>
void LastPanel(const MatMulTask& task, int rows, int outputs, TileArgs<typename Dot::Input> t) {
  float spare[Dot::kMaxRows * kPanel];
  float* const y = t.c;
  const std::size_t stride = t.c_stride;
  for (int r = 0; task.add && r < rows; ++r) {
    for (int o = 0; o < kPanel; ++o) spare[r * kPanel + o] = o < outputs ? y[r * stride + o] : 0;
  }
  t.c = spare;
  t.c_stride = kPanel;
  Dot::Run(rows, 1, t);
  for (int r = 0; r < rows; ++r) {
    for (int o = 0; o < outputs; ++o) y[r * stride + o] = spare[r * kPanel + o];
  }
}

// Smaller matrices are taken to be in cache, where several panels at once hide the latency of
// arithmetic.
constexpr std::size_t kCachedBytes = 128 << 10;

// Weights of the panels that all blocks of rows take before the next ones: they stay in L2. At
// least four panels: fewer leave the last block, which may be of a row or two, too few sums to hide
// what a multiplication takes.
constexpr std::size_t kGroupBytes = 256 << 10;
constexpr int kLeastGroup = 4;

template <typename Dot>
int GroupPanels(std::size_t panel_bytes) {
  const int fit = kGroupBytes / panel_bytes;
  const int most = fit < Dot::kGroupPanels ? fit : Dot::kGroupPanels;
  return most < kLeastGroup ? kLeastGroup : most;
}

// Panels outermost, so that a group of them is still in cache for the second block of rows. Blocks
// are as large as can be, not alike: 16 rows and 2 take 0.96 of what 9 and 9 do (AVX-512, groups of
// 8 panels; one panel at a time, 1.23).
template <typename Dot>
void MatMulPacked(const MatMulTask& task, int rows, const typename Dot::Input* x, float* y) {
  const int block_rows = rows < Dot::kMaxRows ? rows : Dot::kMaxRows;
  const int full_panels = task.outputs / kPanel;
  const int chunks = PadToChunk(task.inputs) / kChunk;
  TileArgs<typename Dot::Input> t;
  t.x_chunk = Size(rows) * kChunk;
  t.row_bytes = 64;
  t.panel_bytes = Size(chunks) * (kChunk / Dot::kInputs) * 64;
  t.chunks = chunks;
  t.c_stride = task.y_stride;
  t.add = task.add;
  // One group at a time where rows come in several blocks, all at once where not.
  const bool one_block = block_rows == rows;
  const int group = one_block ? task.panel_end : GroupPanels<Dot>(t.panel_bytes);
  const bool in_memory = full_panels * t.panel_bytes > kCachedBytes;
  t.turn = static_cast<std::ptrdiff_t>(t.panel_bytes) - kAhead;
  t.stream = in_memory && one_block;
  int configured = 0;
  for (int panel = task.panel_begin; panel < task.panel_end;) {
    const bool full = panel < full_panels;
    const int limit = task.panel_end < full_panels ? task.panel_end : full_panels;
    const int count = !full ? 1 : (panel + group < limit ? group : limit - panel);
    for (int r = 0; r < rows; r += block_rows) {
      const int n = rows - r < block_rows ? rows - r : block_rows;
      if (n != configured) Dot::Begin(configured = n);
      t.x = x + Size(r) * kChunk;
      t.w = static_cast<const char*>(task.weights) + panel * t.panel_bytes;
      t.c = y + r * t.c_stride + Size(panel) * kPanel;
      t.ahead = in_memory && r == 0 ? kAhead : 0;
      if (full) {
        Dot::Run(n, count, t);
      } else {
        LastPanel<Dot>(task, n, task.outputs - panel * kPanel, t);
      }
    }
    panel += count;
  }
  Dot::End();
}

template <typename Dot>
void MatMul(const MatMulTask& task) {
  auto* const packed = static_cast<typename Dot::Input*>(task.scratch);
  for (int begin = 0; begin < task.rows; begin += kPackRows) {
    const int rows = task.rows - begin < kPackRows ? task.rows - begin : kPackRows;
    const float* const x = task.x + Size(begin) * task.inputs;
    for (int r = 0; r < rows; ++r) {
      PackRow<Dot>(x + Size(r) * task.inputs, task.inputs, r, rows, packed);
    }
    MatMulPacked<Dot>(task, rows, packed, task.y + begin * task.y_stride);
  }
}

void RmsNorm(const float* x, const float* gain, float epsilon, int rows, int width, float* out) {
  for (int row = 0; row < rows; ++row, x += width, out += width) {
    Vec sums[4] = {Set1(0.0F), Set1(0.0F), Set1(0.0F), Set1(0.0F)};
    int i = 0;
    for (; i + 64 <= width; i += 64) {
      for (int s = 0; s < 4; ++s) {
        const Vec v = Load(x + i + 16 * s);
        sums[s] = Fma(v, v, sums[s]);
      }
    }
    for (; i < width; i += 16) {
      const Vec v = LoadFirst(x + i, width - i);
      sums[0] = Fma(v, v, sums[0]);
    }
    const float squares = ReduceAdd(Add(Add(sums[0], sums[1]), Add(sums[2], sums[3])));
    const float mean = squares / static_cast<float>(width);
    const Vec factor = Set1(1.0F / __builtin_sqrtf(mean + epsilon));
    for (i = 0; i < width; i += 16) {
      const int n = width - i;
      StoreFirst(out + i, n, Mul(Mul(LoadFirst(x + i, n), factor), LoadFirst(gain + i, n)));
    }
  }
}

void LayerNorm(const float* x, const float* gain, const float* bias, float epsilon, int rows,
               int width, float* out) {
  const auto count = static_cast<float>(width);
  for (int row = 0; row < rows; ++row, x += width, out += width) {
    Vec sums = Set1(0.0F);
    for (int i = 0; i < width; i += 16) sums = Add(sums, LoadFirst(x + i, width - i));
    const Vec mean = Set1(ReduceAdd(sums) / count);
    Vec squares = Set1(0.0F);
    for (int i = 0; i < width; i += 16) {
      const Vec apart = KeepBelow(Sub(LoadFirst(x + i, width - i), mean), width - i, 0.0F);
      squares = Fma(apart, apart, squares);
    }
    const Vec factor = Set1(1.0F / __builtin_sqrtf(ReduceAdd(squares) / count + epsilon));
    for (int i = 0; i < width; i += 16) {
      const int n = width - i;
      const Vec apart = Sub(LoadFirst(x + i, n), mean);
      const Vec scaled = Mul(Mul(apart, factor), LoadFirst(gain + i, n));
      StoreFirst(out + i, n, bias == nullptr ? scaled : Add(scaled, LoadFirst(bias + i, n)));
    }
  }
}

// x / (1 + exp(-t)).
FT_INLINE Vec TimesSigmoid(Vec x, Vec t) {
  return Div(x, Add(Set1(1.0F), Exp(Min(Sub(Set1(0.0F), t), Set1(88.0F)))));
}

template <typename F>
FT_INLINE void GatedMul(const float* gate_up, int rows, int width, float* out, const F& activate) {
  for (int row = 0; row < rows; ++row, gate_up += 2 * width, out += width) {
    for (int i = 0; i < width; i += 16) {
      const int n = width - i;
      const Vec up = LoadFirst(gate_up + width + i, n);
      StoreFirst(out + i, n, Mul(activate(LoadFirst(gate_up + i, n)), up));
    }
  }
}

void SiluMul(const float* gate_up, int rows, int width, float* out) {
  GatedMul(gate_up, rows, width, out, [](Vec gate) { return TimesSigmoid(gate, gate); });
}

void SigmoidMul(const float* gate_up, int rows, int width, float* out) {
  GatedMul(gate_up, rows, width, out, [](Vec gate) { return TimesSigmoid(Set1(1.0F), gate); });
}

// 0.5 (1 + tanh(u)) is 1 / (1 + exp(-2 u)), and 2 sqrt(2 / pi) the first factor.
void GeluMul(const float* gate_up, int rows, int width, float* out) {
  GatedMul(gate_up, rows, width, out, [](Vec gate) {
    const Vec cube = Mul(Mul(gate, gate), gate);
    return TimesSigmoid(gate, Mul(Set1(1.59576912F), Fma(Set1(0.044715F), cube, gate)));
  });
}

// Numbers that are none stay so: the second of two is what Min and Max give then.
void ClampedSwishMul(const float* gate_up, int rows, int width, float* out) {
  const Vec limit = Set1(kSwishLimit);
  const Vec lowest = Set1(-kSwishLimit);
  for (int row = 0; row < rows; ++row, gate_up += 2 * width, out += width) {
    for (int i = 0; i < width; i += 16) {
      const int n = width - i;
      const Vec gate = Min(limit, LoadFirst(gate_up + i, n));
      const Vec up = Max(lowest, Min(limit, LoadFirst(gate_up + width + i, n)));
      const Vec activated = TimesSigmoid(gate, Mul(Set1(1.702F), gate));
      StoreFirst(out + i, n, Mul(activated, Add(up, Set1(1.0F))));
    }
  }
}

void Softmax(const float* x, int count, float* out) {
  float largest = x[0];
  for (int i = 1; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  Vec sums = Set1(0.0F);
  for (int i = 0; i < count; i += 16) {
    const int n = count - i;
    const Vec part = KeepBelow(Exp(Sub(LoadFirst(x + i, n), Set1(largest))), n, 0.0F);
    StoreFirst(out + i, n, part);
    sums = Add(sums, part);
  }
  const Vec sum = Set1(ReduceAdd(sums));
  for (int i = 0; i < count; i += 16) {
    StoreFirst(out + i, count - i, Div(LoadFirst(out + i, count - i), sum));
  }
}

void Sigmoids(const float* x, int count, float* out) {
  for (int i = 0; i < count; i += 16) {
    const int n = count - i;
    StoreFirst(out + i, n, TimesSigmoid(Set1(1.0F), LoadFirst(x + i, n)));
  }
}

void AddGated(const float* gates, const float* x, int rows, int width, float* y) {
  for (int row = 0; row < rows; ++row, x += width, y += width) {
    const Vec part = TimesSigmoid(Set1(1.0F), Set1(gates[row]));
    for (int i = 0; i < width; i += 16) {
      const int n = width - i;
      StoreFirst(y + i, n, Fma(part, LoadFirst(x + i, n), LoadFirst(y + i, n)));
    }
  }
}

void WeightedSum(const float* x, const std::int32_t* places, const float* weights, int count,
                 int width, float* out) {
  for (int d = 0; d < width; d += 16) {
    const int n = width - d;
    Vec sum = Set1(0.0F);
    for (int i = 0; i < count; ++i) {
      const float* const row = x + std::ptrdiff_t{places[i]} * width;
      sum = Fma(Set1(weights[i]), LoadFirst(row + d, n), sum);
    }
    StoreFirst(out + d, n, sum);
  }
}

// cap * tanh(x * inverse / 2), tanh(t / 2) being (e^t - 1) / (e^t + 1).
FT_INLINE Vec Capped(Vec x, Vec inverse, Vec cap) {
  const Vec one = Set1(1.0F);
  const Vec e = Exp(Min(Mul(x, inverse), Set1(88.0F)));
  return Mul(Div(Sub(e, one), Add(e, one)), cap);
}

void CapAll(float cap, int count, float* x) {
  const Vec inverse = Set1(2.0F / cap);
  for (int i = 0; i < count; i += 16) {
    const int n = count - i;
    StoreFirst(x + i, n, Capped(LoadFirst(x + i, n), inverse, Set1(cap)));
  }
}

void Rotate(float* x, int heads, int head_dim, int dims, const float* cos, const float* sin) {
  const int half = dims / 2;
  for (int head = 0; head < heads; ++head, x += head_dim) {
    for (int i = 0; i < half; i += 16) {
      const int n = half - i;
      const Vec c = LoadFirst(cos + i, n);
      const Vec s = LoadFirst(sin + i, n);
      const Vec a = LoadFirst(x + i, n);
      const Vec b = LoadFirst(x + half + i, n);
      StoreFirst(x + i, n, Sub(Mul(a, c), Mul(b, s)));
      StoreFirst(x + half + i, n, Add(Mul(b, c), Mul(a, s)));
    }
  }
}

float ReadStream(const void* data, std::size_t bytes) {
  const float* p = static_cast<const float*>(data);
  const float* const end = p + bytes / sizeof(float);
  Vec sums[4] = {Set1(0.0F), Set1(0.0F), Set1(0.0F), Set1(0.0F)};
  for (; p < end; p += 64) {
    for (int s = 0; s < 4; ++s) {
      Prefetch(reinterpret_cast<const char*>(p + 16 * s) + kAhead);
      sums[s] = Max(sums[s], Load(p + 16 * s));
    }
  }
  return ReduceMax(Max(Max(sums[0], sums[1]), Max(sums[2], sums[3])));
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
