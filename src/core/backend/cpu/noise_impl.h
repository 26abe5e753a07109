#pragma once

// The search for tokens whose noisy score may reach a threshold. Include after a vec_*.h.

#include "core/backend/cpu/attention/attention_impl.h"
#include "core/backend/cpu/delta/delta_impl.h"

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

// On its own, where it has all registers.
__attribute__((noinline)) void DrawNoiseGroup(std::uint64_t seed, std::uint64_t position,
                                              std::uint32_t group, std::uint32_t* draws) {
  DrawGroup(seed, position, group, draws);
}

int ScanNoise(const NoiseScan& scan, NoiseHit* hits) {
  const bool noisy = scan.inverse_temperature != 0.0F;
  const float highest = noisy ? scan.inverse_temperature * (1 + kMargin) : 1.0F;
  const float lowest = noisy ? scan.inverse_temperature * (1 - kMargin) : 1.0F;
  const float hopeless_score = scan.threshold - (noisy ? kNoiseMax : 0.0F);
  const Vec upper = Set1(highest);
  const Vec lower = Set1(lowest);
  const Vec threshold = Set1(scan.threshold);
  const Vec hopeless = Set1(hopeless_score);
  int count = 0;
  alignas(64) std::uint32_t draws[kNoiseGroup] = {};
  for (int group = scan.begin; group < scan.end; group += kNoiseGroup) {
    if (scan.maxima != nullptr) {
      const float most = scan.maxima[group / kNoiseGroup];
      const float above = most * highest;
      const float below = most * lowest;
      if ((above > below ? above : below) < hopeless_score) continue;
    }
    const float* z = scan.logits + group;
    float rest[kNoiseGroup];
    if (scan.end - group < kNoiseGroup) {
      for (int i = 0; i < kNoiseGroup; ++i) {
        rest[i] = group + i < scan.end ? z[i] : -__builtin_inff();
      }
      z = rest;
    }
    // First a bound for every sixteenth token together: hardly any group passes it.
    Vec largest = Set1(-__builtin_inff());
    for (int i = 0; i < kNoiseGroup; i += 16) largest = Max(Load(z + i), largest);
    largest = LogitBound(largest, upper, lower);
    if (NotLessMask(largest, hopeless) == 0) continue;
    if (noisy) {
      DrawNoiseGroup(scan.seed, scan.position, static_cast<std::uint32_t>(group / kNoiseGroup),
                     draws);
      std::uint32_t most[16] = {};
      for (int i = 0; i < kNoiseGroup; i += 16) {
        for (int j = 0; j < 16; ++j) most[j] = draws[i + j] > most[j] ? draws[i + j] : most[j];
      }
      const Vec noise = GumbelBound(most, kBoundOffset, kBoundSlope);
      if (NotLessMask(Add(largest, noise), threshold) == 0) continue;
    }
    for (int i = 0; i < kNoiseGroup; i += 16) {
      Vec bound = LogitBound(Load(z + i), upper, lower);
      if (noisy) bound = Add(bound, GumbelBound(draws + i, kBoundOffset, kBoundSlope));
      for (std::uint32_t mask = NotLessMask(bound, threshold); mask != 0; mask &= mask - 1) {
        const int token = i + __builtin_ctz(mask);
        if (group + token < scan.end) hits[count++] = {group + token, draws[token]};
      }
    }
  }
  return count;
}

void GroupMaxima(const float* x, int count, float* maxima) {
  for (int begin = 0; begin < count; begin += kNoiseGroup) {
    const int here = count - begin < kNoiseGroup ? count - begin : kNoiseGroup;
    Vec largest = Set1(-__builtin_inff());
    int i = 0;
    // Max takes its second operand where one is NaN.
    for (; i + 16 <= here; i += 16) largest = Max(Load(x + begin + i), largest);
    alignas(64) float lanes[16];
    Store(lanes, largest);
    float most = -__builtin_inff();
    for (const float lane : lanes) most = lane > most ? lane : most;
    for (; i < here; ++i) most = x[begin + i] > most ? x[begin + i] : most;
    *maxima++ = most;
  }
}

// The table of all operations for an instruction set whose BF16 products are `Bf16Dot`.
template <typename Bf16Dot, typename F32Dot>
constexpr Kernels MakeTable(const char* name) {
  return Kernels{
      .name = name,
      .matmul_bf16 = MatMul<Bf16Dot>,
      .matmul_f32 = MatMul<F32Dot>,
      .attention = {AttentionOf<PlainKv<Bf16Dot>>(), AttentionOf<PlainKv<F32Dot>>(),
                    AttentionOf<Q8Kv>()},
      .rms_norm = RmsNorm,
      .layer_norm = LayerNorm,
      .silu_mul = SiluMul,
      .gelu_mul = GeluMul,
      .sigmoid_mul = SigmoidMul,
      .clamped_swish_mul = ClampedSwishMul,
      .softmax = Softmax,
      .sigmoids = Sigmoids,
      .add_gated = AddGated,
      .weighted_sum = WeightedSum,
      .cap = CapAll,
      .rotate = Rotate,
      .finish = Finish,
      .scan_noise = ScanNoise,
      .group_maxima = GroupMaxima,
      .delta = kDeltaKernels,
      .draw_group = DrawNoiseGroup,
      .read_stream = ReadStream,
  };
}

}  // namespace
}  // namespace foretoken::cpu::FT_ISA
