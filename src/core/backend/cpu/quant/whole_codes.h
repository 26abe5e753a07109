#pragma once

// Codes as vpdpbusd takes them, of any size of register: unsigned bytes as they were unpacked.
// Include after a lanes_*.h.

namespace foretoken::cpu::FT_ISA {
namespace {

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

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
