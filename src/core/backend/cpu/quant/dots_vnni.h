#pragma once

// Integer dot products by vpdpbusd. Include after lanes_avx512.h.

#include "core/backend/cpu/quant/whole_codes.h"

namespace foretoken::cpu::FT_ISA {
namespace {

// As many rows of inputs as leave registers for 8 steps of weights and what one row needs.
constexpr int kMostRows = 16;
// Rows whose dot products are computed together: one, so that its sums are in a register.
template <int kRows>
constexpr int kDotRows = 1;

// Four values of a row, as one operand.
struct __attribute__((may_alias)) Four {
  std::int8_t values[4];
};

// sum += codes * four, in every lane with the same four values. By name, since GCC spends an
// instruction of its own on giving all lanes the values (1 to 8 % of the time).
FT_INLINE void AddProducts(Ints* sum, Ints codes, const std::int8_t* values) {
  const auto& four = reinterpret_cast<const Four&>(*values);
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(*sum) : "v"(codes), "m"(four));
}

// sums[r] += the codes times the 4 * kSteps values at `values` + r * stride. Of eight steps every
// other one has a sum of its own: each addition waits for the one before it.
template <int kBits, int kSteps, int kRows>
FT_INLINE void Dot(const Steps<kBits, kSteps>& steps, const std::int8_t* values, std::size_t stride,
                   Ints* sums) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    Ints odd = ZeroInts();
#pragma GCC unroll 8
    for (int s = 0; s < kSteps; ++s) {
      const bool own = kSteps == 8 && s % 2 == 1;
      AddProducts(own ? &odd : &sums[r], steps.codes[s], values + r * stride + 4 * s);
    }
    if constexpr (kSteps == 8) sums[r] = AddInts(sums[r], odd);
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
