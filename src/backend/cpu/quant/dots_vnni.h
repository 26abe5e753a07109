#pragma once

// Integer dot products by vpdpbusd. Include after lanes_avx512.h.

namespace foretoken::cpu::FT_ISA {
namespace {

// As many rows of inputs as leave registers for 8 steps of weights and what one row needs.
constexpr int kMostRows = 16;
// Rows whose dot products are computed together: one, so that its sums are in a register.
template <int kRows>
constexpr int kDotRows = 1;

// Whether codes of kBits are multiplied by the values as they are.
template <int kBits>
constexpr bool kCodesAsTheyAre = true;

// Codes of `kSteps` steps, each below 2^kBits.
template <int kBits, int kSteps>
struct Steps {
  Ints codes[kSteps];
};
template <int kBits, int kSteps>
FT_INLINE void Prepare(const Ints* codes, Steps<kBits, kSteps>* steps) {
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) steps->codes[s] = codes[s];
}

// Four values of a row, as one operand.
struct __attribute__((may_alias)) Four {
  std::int8_t values[4];
};

// sums[r] += the codes times the 4 * kSteps values at `values` + r * stride.
template <int kBits, int kSteps, int kRows>
FT_INLINE void Dot(const Steps<kBits, kSteps>& steps, const std::int8_t* values, std::size_t stride,
                   Ints* sums) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int s = 0; s < kSteps; ++s) {
      // By name, since GCC spends an instruction of its own on giving all lanes the four values
      // (1 to 8 % of the time).
      const auto& four = reinterpret_cast<const Four&>(values[r * stride + 4 * s]);
      asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sums[r]) : "v"(steps.codes[s]), "m"(four));
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
