#pragma once

#include <bit>
#include <cstdint>

namespace foretoken {

/// The largest logit, NaN counting as -inf; -inf for none.
float MaxLogit(const float* logits, int count);

/// e^x for x <= 0, to about 1e-7 relative; below -87, and for NaN, the value there. A fixed
/// sequence of float operations, so that a compiler may vectorise it without changing a bit.
inline float ExpNonPositive(float x) {
  constexpr float kRoundToInteger = 12582912.0F;  // 1.5 * 2^23: adding it leaves no fraction bits.
  x = x > -87.0F ? x : -87.0F;
  const float shifted = x * 1.44269504F + kRoundToInteger;
  const float n = shifted - kRoundToInteger;
  // ln 2 in two parts, so that n * ln 2 is exact enough.
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float series = 1.0F / 5040;
  series = series * r + 1.0F / 720;
  series = series * r + 1.0F / 120;
  series = series * r + 1.0F / 24;
  series = series * r + 1.0F / 6;
  series = series * r + 0.5F;
  series = series * r + 1.0F;
  series = series * r + 1.0F;
  const auto exponent =
      (std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRoundToInteger) + 127)
      << 23;
  return series * std::bit_cast<float>(exponent);
}

/// The unnormalised probability exp((logit - max) / temperature); about 0 for -inf and NaN.
inline float Weight(float logit, float max, float temperature) {
  return ExpNonPositive((logit - max) / temperature);
}

/// The sum of `Weight` over `count` logits, in a fixed order.
double SumWeights(const float* logits, int count, float max, float temperature);

}  // namespace foretoken
