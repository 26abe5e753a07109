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

// Codes of `kSteps` steps, widened: byte j of every output after that of the output before it.
template <int kBits, int kSteps>
struct Steps {
  std::int16_t codes[kSteps][64];
};
template <int kBits, int kSteps>
FT_INLINE void Prepare(const Ints* codes, Steps<kBits, kSteps>* steps) {
  for (int s = 0; s < kSteps; ++s) {
    std::uint8_t bytes[64];
    __builtin_memcpy(bytes, &codes[s], sizeof(bytes));
    for (int i = 0; i < 64; ++i) steps->codes[s][i] = bytes[i];
  }
}

// sums[r] += the codes times the 4 * kSteps values at `values` + r * stride.
template <int kBits, int kSteps, int kRows>
FT_INLINE void Dot(const Steps<kBits, kSteps>& steps, const std::int8_t* values, std::size_t stride,
                   Ints* sums) {
  for (int r = 0; r < kRows; ++r) {
    std::int32_t lanes[64] = {};
    for (int s = 0; s < kSteps; ++s) {
      std::int16_t four[64];
      for (int i = 0; i < 64; ++i) four[i] = values[r * stride + 4 * s + i % 4];
      for (int i = 0; i < 64; ++i) lanes[i] += steps.codes[s][i] * four[i];
    }
    for (int o = 0; o < 16; ++o) {
      const std::int32_t sum =
          (lanes[4 * o] + lanes[4 * o + 1]) + (lanes[4 * o + 2] + lanes[4 * o + 3]);
      sums[r].q[o / 4][o % 4] += static_cast<std::uint32_t>(sum);
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
