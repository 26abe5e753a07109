#pragma once

// Sixteen floats or 32-bit integers as four 128-bit vectors of the compiler, which map to what any
// machine has.

#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/quant/quant_kernels.h"

#ifndef FT_ISA
#error "define FT_ISA, the namespace of the instruction set, before including kernel headers"
#endif
#define FT_INLINE inline __attribute__((always_inline))

namespace foretoken::cpu::FT_ISA {
namespace {

typedef float Quad __attribute__((vector_size(16)));
typedef std::uint32_t QuadInt __attribute__((vector_size(16)));
typedef std::int32_t QuadSigned __attribute__((vector_size(16)));

struct Floats {
  Quad q[4];
};
struct Ints {
  QuadInt q[4];
};

template <typename V, typename F>
FT_INLINE V Quads(const F& f) {
  return V{{f(0), f(1), f(2), f(3)}};
}

FT_INLINE Floats LoadFloats(const float* p) {
  Floats v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
FT_INLINE void StoreFloats(float* p, Floats v) { __builtin_memcpy(p, &v, sizeof(v)); }
FT_INLINE Floats BroadcastFloat(const float* p) {
  const Quad q = {*p, *p, *p, *p};
  return Floats{{q, q, q, q}};
}
FT_INLINE Floats ZeroFloats() { return Floats{}; }
FT_INLINE Floats Add(Floats a, Floats b) {
  return Quads<Floats>([&](int i) { return a.q[i] + b.q[i]; });
}
FT_INLINE Floats Mul(Floats a, Floats b) {
  return Quads<Floats>([&](int i) { return a.q[i] * b.q[i]; });
}
// One rounding, by the C library where the machine has no such instruction.
FT_INLINE Floats Fma(Floats a, Floats b, Floats c) {
  Floats v;
  for (int i = 0; i < 16; ++i) {
    v.q[i / 4][i % 4] = __builtin_fmaf(a.q[i / 4][i % 4], b.q[i / 4][i % 4], c.q[i / 4][i % 4]);
  }
  return v;
}
// Every NaN becomes the one of docs/develop/arithmetic.md.
FT_INLINE Floats OneNan(Floats v) {
  for (int i = 0; i < 16; ++i) {
    if (v.q[i / 4][i % 4] != v.q[i / 4][i % 4]) v.q[i / 4][i % 4] = __builtin_nanf("");
  }
  return v;
}

FT_INLINE Ints LoadInts(const void* p) {
  Ints v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
// Where a register of the machine is an Ints: loads it here, neither earlier nor later.
FT_INLINE void LoadNow(Ints*) {}
FT_INLINE Ints SetInts(std::uint32_t x) {
  const QuadInt q = {x, x, x, x};
  return Ints{{q, q, q, q}};
}
FT_INLINE Ints BroadcastInt(const std::int32_t* p) {
  return SetInts(static_cast<std::uint32_t>(*p));
}
FT_INLINE Ints SetBytes(int x) { return SetInts(static_cast<std::uint32_t>(x) * 0x01010101U); }
FT_INLINE Ints ZeroInts() { return Ints{}; }
FT_INLINE Ints AddInts(Ints a, Ints b) {
  return Quads<Ints>([&](int i) { return a.q[i] + b.q[i]; });
}
FT_INLINE Ints And(Ints a, Ints b) {
  return Quads<Ints>([&](int i) { return a.q[i] & b.q[i]; });
}
FT_INLINE Ints Or(Ints a, Ints b) {
  return Quads<Ints>([&](int i) { return a.q[i] | b.q[i]; });
}
// a | (b & mask).
FT_INLINE Ints OrMasked(Ints a, Ints b, Ints mask) { return Or(a, And(b, mask)); }
template <int kBits>
FT_INLINE Ints ShiftLeft(Ints v) {
  return Quads<Ints>([&](int i) { return v.q[i] << kBits; });
}
template <int kBits>
FT_INLINE Ints ShiftRight(Ints v) {
  return Quads<Ints>([&](int i) { return v.q[i] >> kBits; });
}
// Each byte of `indices`, below 16, replaced by that one of `table`.
FT_INLINE Ints LookUp(const std::uint8_t* table, Ints indices) {
  std::uint8_t bytes[64];
  __builtin_memcpy(bytes, &indices, sizeof(bytes));
  for (std::uint8_t& byte : bytes) byte = table[byte];
  return LoadInts(bytes);
}

FT_INLINE Floats ToFloats(Ints v) {
  return Quads<Floats>(
      [&](int i) { return __builtin_convertvector(reinterpret_cast<QuadSigned>(v.q[i]), Quad); });
}
FT_INLINE Floats AsFloats(Ints v) {
  return Quads<Floats>([&](int i) { return reinterpret_cast<Quad>(v.q[i]); });
}

// As integers, from elements of type T.
template <typename T>
FT_INLINE Ints Widen(const void* p) {
  T elements[16];
  __builtin_memcpy(elements, p, sizeof(elements));
  Ints v;
  for (int i = 0; i < 16; ++i) v.q[i / 4][i % 4] = static_cast<std::uint32_t>(elements[i]);
  return v;
}
FT_INLINE Ints LoadWords16(const void* p) { return Widen<std::uint16_t>(p); }
FT_INLINE Ints LoadSignedBytes(const void* p) { return Widen<std::int8_t>(p); }
FT_INLINE Ints LoadBytes(const void* p) { return Widen<std::uint8_t>(p); }

// Half precision: exponent and mantissa moved to a float's place stand for a number 2^112 times too
// small, denormal ones included; where the exponent is the largest, the float's is set to it.
FT_INLINE Floats LoadHalves(const void* p) {
  const Ints bits = LoadWords16(p);
  const Ints magnitudes = ShiftLeft<13>(And(bits, SetInts(0x7FFF)));
  const Ints signs = ShiftLeft<16>(And(bits, SetInts(0x8000)));
  return Quads<Floats>([&](int i) {
    const Quad power = Quad{} + 0x1p112F;
    const QuadInt finite =
        reinterpret_cast<QuadInt>(reinterpret_cast<Quad>(magnitudes.q[i]) * power);
    const QuadInt special =
        reinterpret_cast<QuadInt>(magnitudes.q[i] >= 0x0F800000) & (magnitudes.q[i] | 0x7F800000);
    const QuadInt keep = ~reinterpret_cast<QuadInt>(magnitudes.q[i] >= 0x0F800000);
    return reinterpret_cast<Quad>(signs.q[i] | (finite & keep) | special);
  });
}

// The sums of the first and of the last 16 of 32 values.
FT_INLINE void SumHalves(const std::int8_t* values, std::int32_t* sums) {
  sums[0] = 0;
  sums[1] = 0;
  for (int j = 0; j < 16; ++j) sums[0] += values[j];
  for (int j = 16; j < 32; ++j) sums[1] += values[j];
}

// Into L2.
FT_INLINE void Prefetch(const std::byte* p) { __builtin_prefetch(p, 0, 2); }

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
