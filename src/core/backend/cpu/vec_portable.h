#pragma once

// Sixteen floats as four 128-bit vectors of the compiler, which map to what any machine has.

#include <cstdint>

#include "base/numbers/philox.h"
#include "core/backend/cpu/kernels.h"

#ifndef FT_ISA
#error "define FT_ISA, the namespace of the instruction set, before including kernel headers"
#endif
#define FT_INLINE inline __attribute__((always_inline))

namespace foretoken::cpu::FT_ISA {
namespace {

typedef float Quad __attribute__((vector_size(16)));
typedef std::int32_t QuadInt __attribute__((vector_size(16)));

struct Vec {
  Quad q[4];
};

struct VectorTiles {
  static constexpr int kMaxRows = 4;
  static constexpr int kStreamRows = 4;
  static constexpr int kStreamPanels = 1;
  static constexpr int kGroupPanels = 4;
  static constexpr int Panels(int) { return 1; }
};

template <typename F>
FT_INLINE Vec EachQuad(const F& f) {
  return Vec{{f(0), f(1), f(2), f(3)}};
}

FT_INLINE Vec Load(const float* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
FT_INLINE void Store(float* p, Vec v) { __builtin_memcpy(p, &v, sizeof(v)); }
FT_INLINE Vec Set1(float x) {
  const Quad q = {x, x, x, x};
  return Vec{{q, q, q, q}};
}
FT_INLINE Vec Add(Vec a, Vec b) {
  return EachQuad([&](int i) { return a.q[i] + b.q[i]; });
}
FT_INLINE Vec Sub(Vec a, Vec b) {
  return EachQuad([&](int i) { return a.q[i] - b.q[i]; });
}
FT_INLINE Vec Mul(Vec a, Vec b) {
  return EachQuad([&](int i) { return a.q[i] * b.q[i]; });
}
FT_INLINE Vec Div(Vec a, Vec b) {
  return EachQuad([&](int i) { return a.q[i] / b.q[i]; });
}
#ifdef FT_FUSED
// a * b + c, rounded once: slow where the machine has no such operation.
FT_INLINE Vec Fma(Vec a, Vec b, Vec c) {
  return EachQuad([&](int i) {
    const Quad x = a.q[i], y = b.q[i], z = c.q[i];
    return Quad{__builtin_fmaf(x[0], y[0], z[0]), __builtin_fmaf(x[1], y[1], z[1]),
                __builtin_fmaf(x[2], y[2], z[2]), __builtin_fmaf(x[3], y[3], z[3])};
  });
}
#else
// a * b + c; not fused, as the base instruction set has no such operation.
FT_INLINE Vec Fma(Vec a, Vec b, Vec c) { return Add(Mul(a, b), c); }
#endif
// The second operand where either is NaN.
FT_INLINE Vec Max(Vec a, Vec b) {
  return EachQuad([&](int i) { return a.q[i] > b.q[i] ? a.q[i] : b.q[i]; });
}
FT_INLINE Vec Min(Vec a, Vec b) {
  return EachQuad([&](int i) { return a.q[i] < b.q[i] ? a.q[i] : b.q[i]; });
}

FT_INLINE float ReduceAdd(Vec v) {
  const Quad s = (v.q[0] + v.q[2]) + (v.q[1] + v.q[3]);
  return (s[0] + s[2]) + (s[1] + s[3]);
}
FT_INLINE float ReduceMax(Vec v) {
  float best = v.q[0][0];
  for (int i = 1; i < 16; ++i) best = v.q[i / 4][i % 4] > best ? v.q[i / 4][i % 4] : best;
  return best;
}

// Lanes [0, n) of `v`, `other` elsewhere.
FT_INLINE Vec KeepBelow(Vec v, int n, float other) {
  for (int i = 0; i < 16; ++i) v.q[i / 4][i % 4] = i < n ? v.q[i / 4][i % 4] : other;
  return v;
}
// `v`, but 0 where x < limit.
FT_INLINE Vec ZeroWhereBelow(Vec v, Vec x, float limit) {
  return EachQuad([&](int i) {
    const QuadInt keep = ~(x.q[i] < limit);
    return reinterpret_cast<Quad>(reinterpret_cast<QuadInt>(v.q[i]) & keep);
  });
}
// A bit for every lane where a is not less than b (or either is NaN).
FT_INLINE std::uint32_t NotLessMask(Vec a, Vec b) {
  std::uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) {
    mask |= static_cast<std::uint32_t>(!(a.q[i / 4][i % 4] < b.q[i / 4][i % 4])) << i;
  }
  return mask;
}

// Nearest integer, for |x| < 2^22.
FT_INLINE Vec RoundToInteger(Vec x) {
  const Vec magic = Set1(12582912.0F);
  return Sub(Add(x, magic), magic);
}
// v * 2^n for integral n in [-126, 127].
FT_INLINE Vec TimesPowerOfTwo(Vec v, Vec n) {
  return EachQuad([&](int i) {
    const QuadInt bits = (__builtin_convertvector(n.q[i], QuadInt) + 127) << 23;
    return v.q[i] * reinterpret_cast<Quad>(bits);
  });
}

FT_INLINE Vec RoundToBf16(Vec v) {
  return EachQuad([&](int i) {
    const QuadInt bits = reinterpret_cast<QuadInt>(v.q[i]);
    const QuadInt rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & static_cast<int>(0xFFFF0000);
    return reinterpret_cast<Quad>(rounded);
  });
}
// Even and odd elements of 32 bfloat16 numbers.
FT_INLINE void LoadBf16Pairs(const char* p, Vec* even, Vec* odd) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof(v));
  for (int i = 0; i < 4; ++i) {
    const QuadInt bits = reinterpret_cast<QuadInt>(v.q[i]);
    even->q[i] = reinterpret_cast<Quad>(bits << 16);
    odd->q[i] = reinterpret_cast<Quad>(bits & static_cast<int>(0xFFFF0000));
  }
}

// Sixteen sums of 32 bits, and the first and second of sixteen pairs of integers.
struct Sums {
  QuadInt q[4];
};
struct Pairs {
  QuadInt first[4];
  QuadInt second[4];
};
FT_INLINE Sums ZeroSums() { return {}; }
// Makes pairs of integers of 8 bits.
FT_INLINE Pairs LoadPairs(const std::int8_t* p) {
  Pairs pairs;
  for (int i = 0; i < 4; ++i, p += 8) {
    pairs.first[i] = QuadInt{p[0], p[2], p[4], p[6]};
    pairs.second[i] = QuadInt{p[1], p[3], p[5], p[7]};
  }
  return pairs;
}
// The same pair of integers of 16 bits sixteen times.
FT_INLINE Pairs RepeatPair(const std::int16_t* p) {
  const QuadInt first = {p[0], p[0], p[0], p[0]};
  const QuadInt second = {p[1], p[1], p[1], p[1]};
  return {{first, first, first, first}, {second, second, second, second}};
}
// Adds x[0] y[0] + x[1] y[1] of each pair.
FT_INLINE Sums AddProducts(Sums sums, Pairs x, Pairs y) {
  for (int i = 0; i < 4; ++i) {
    sums.q[i] += x.first[i] * y.first[i] + x.second[i] * y.second[i];
  }
  return sums;
}
// As integers of 16 bits, to nearest, ties to even.
FT_INLINE void StoreNearest(std::int16_t* to, Vec v) {
  const Vec nearest = RoundToInteger(v);
  for (int i = 0; i < 16; ++i) to[i] = static_cast<std::int16_t>(nearest.q[i / 4][i % 4]);
}
FT_INLINE Vec ToFloat(Sums sums) {
  return EachQuad([&](int i) { return __builtin_convertvector(sums.q[i], Quad); });
}

FT_INLINE void Prefetch(const char* p) { __builtin_prefetch(p); }

// An upper bound of -log(x), x = (2^32 - 1 - draw) / 2^32, hence of the Gumbel noise of 16 draws.
FT_INLINE Vec GumbelBound(const std::uint32_t* draws, float offset, float slope) {
  float bound[16];
  for (int i = 0; i < 16; ++i) {
    float rest = static_cast<float>(~draws[i]);
    rest = rest < 0.5F ? 0.5F : rest;
    std::int32_t bits;
    __builtin_memcpy(&bits, &rest, sizeof(bits));
    bound[i] = offset - slope * static_cast<float>(bits);
  }
  return Load(bound);
}

FT_INLINE void DrawGroup(std::uint64_t seed, std::uint64_t position, std::uint32_t group,
                         std::uint32_t* draws) {
  for (std::uint32_t block = 0; block < kNoiseBlocks; ++block) {
    const PhiloxBlock words =
        Philox4x32({group * kNoiseBlocks + block, static_cast<std::uint32_t>(position),
                    static_cast<std::uint32_t>(position >> 32), 0},
                   seed);
    for (const std::uint32_t word : words) *draws++ = word;
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA

#include "core/backend/cpu/vec_unmasked.h"
