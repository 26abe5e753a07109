#pragma once

// Integer dot products in plain loops. Include after lanes_portable.h.

namespace foretoken::cpu::FT_ISA {
namespace {

constexpr int kMostRows = 4;
template <int kRows>
constexpr int kDotRows = 1;

// Whether codes of kBits are multiplied by the values as they are.
template <int kBits>
constexpr bool kCodesAsTheyAre = true;

// Codes of `kSteps` steps, the ones of an output side by side.
template <int kBits, int kSteps>
struct Steps {
  std::int16_t codes[kPanel][4 * kSteps];
};
template <int kBits, int kSteps>
void Prepare(const Ints* codes, Steps<kBits, kSteps>* steps) {
  std::uint8_t bytes[kPanel][4 * kSteps];
  for (int s = 0; s < kSteps; ++s) {
    for (int o = 0; o < kPanel; ++o) {
      __builtin_memcpy(bytes[o] + 4 * s, reinterpret_cast<const char*>(codes + s) + 4 * o, 4);
    }
  }
  for (int o = 0; o < kPanel; ++o) {
    for (int i = 0; i < 4 * kSteps; ++i) steps->codes[o][i] = bytes[o][i];
  }
}

// sums[r] += the codes times the 4 * kSteps values at `values` + r * stride.
template <int kBits, int kSteps, int kRows>
void Dot(const Steps<kBits, kSteps>& steps, const std::int8_t* values, std::size_t stride,
         Ints* sums) {
  for (int r = 0; r < kRows; ++r) {
    std::int16_t wide[4 * kSteps];
    for (int i = 0; i < 4 * kSteps; ++i) wide[i] = values[r * stride + i];
    std::uint32_t lanes[kPanel];
    for (int o = 0; o < kPanel; ++o) {
      std::int32_t sum = 0;
      for (int i = 0; i < 4 * kSteps; ++i) sum += steps.codes[o][i] * wide[i];
      lanes[o] = static_cast<std::uint32_t>(sum);
    }
    sums[r] = AddInts(sums[r], LoadInts(lanes));
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
