#pragma once

// The search for tokens whose noisy score may reach a threshold. Include after kernels_impl.h.

#include "backend/cpu/kernels.h"

namespace foretoken::cpu::FT_ISA {
namespace {

constexpr float kLn2 = 0.693147181F;
// With u = 1 - x, -log(-log u) <= -log x, since -log(1 - x) >= x; and log2 x is at least the
// exponent plus the mantissa of x, read off the bits of float(2^32 x). So the noise is at most
// kBoundOffset - kBoundSlope * bits, where the offset has a margin for float rounding.
constexpr float kBoundSlope = kLn2 / 8388608.0F;
constexpr float kBoundOffset = kLn2 * (127 + 32) + 1e-3F;
// The noise of the largest draw is 22.88.
constexpr float kNoiseMax = 22.9F;
// Relative margin for rounding z / T and the sum to float.
constexpr float kMargin = 1e-6F;

// An upper bound of z / T.
FT_INLINE Vec LogitBound(Vec z, Vec upper, Vec lower) { return Max(Mul(z, upper), Mul(z, lower)); }

int ScanNoise(const NoiseScan& scan, NoiseHit* hits) {
  const bool noisy = scan.inverse_temperature != 0.0F;
  const Vec upper = Set1(noisy ? scan.inverse_temperature * (1 + kMargin) : 1.0F);
  const Vec lower = Set1(noisy ? scan.inverse_temperature * (1 - kMargin) : 1.0F);
  const Vec threshold = Set1(scan.threshold);
  const Vec hopeless = Set1(scan.threshold - (noisy ? kNoiseMax : 0.0F));
  int count = 0;
  alignas(64) std::uint32_t draws[kNoiseGroup] = {};
  for (int group = scan.begin; group < scan.end; group += kNoiseGroup) {
    const float* z = scan.logits + group;
    float rest[kNoiseGroup];
    if (scan.end - group < kNoiseGroup) {
      for (int i = 0; i < kNoiseGroup; ++i) {
        rest[i] = group + i < scan.end ? z[i] : -__builtin_inff();
      }
      z = rest;
    }
    Vec bounds[kNoiseGroup / 16];
    std::uint32_t possible = 0;
    for (int i = 0; i < kNoiseGroup / 16; ++i) {
      bounds[i] = LogitBound(Load(z + 16 * i), upper, lower);
      possible |= NotLessMask(bounds[i], hopeless);
    }
    if (possible == 0) continue;
    if (noisy) {
      DrawGroup(scan.seed, scan.position, static_cast<std::uint32_t>(group / kNoiseGroup), draws);
    }
    for (int i = 0; i < kNoiseGroup / 16; ++i) {
      const Vec bound = noisy
                            ? Add(bounds[i], GumbelBound(draws + 16 * i, kBoundOffset, kBoundSlope))
                            : bounds[i];
      std::uint32_t mask = NotLessMask(bound, threshold);
      for (; mask != 0; mask &= mask - 1) {
        const int lane = 16 * i + __builtin_ctz(mask);
        if (group + lane < scan.end) hits[count++] = {group + lane, draws[lane]};
      }
    }
  }
  return count;
}

void DrawNoiseGroup(std::uint64_t seed, std::uint64_t position, std::uint32_t group,
                    std::uint32_t* draws) {
  DrawGroup(seed, position, group, draws);
}

// The table of an instruction set whose BF16 products are `Bf16Dot`.
template <typename Bf16Dot, typename F32Dot>
constexpr Kernels MakeTable(const char* name) {
  return Kernels{
      name,
      {MatMul<Bf16Dot>, PackQuery<Bf16Dot>, Attend<Bf16Dot>, StoreKvBf16,
       CopyKv<std::uint16_t, false>},
      {MatMul<F32Dot>, PackQuery<F32Dot>, Attend<F32Dot>, StoreKvF32, CopyKv<float, true>},
      RmsNorm,
      SiluMul,
      Rotate,
      Finish,
      ScanNoise,
      DrawNoiseGroup,
      ReadStream,
  };
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
