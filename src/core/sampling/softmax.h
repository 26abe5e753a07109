#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>

namespace foretoken {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

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

/// Writes `Weight` of each of `count` logits, but 0 where a logit is -inf or NaN: a removed token
/// has no probability, not merely next to none.
void WriteWeights(const float* logits, int count, float max, float temperature, float* weights);

/// The sum of what WriteWeights writes, in a fixed order.
double SumWeights(const float* logits, int count, float max, float temperature);

/// In a fixed order.
double Sum(std::span<const float> values);

/// ln x, to about 1e-7 of the larger of 1 and its magnitude; -inf below 2^-126, the smallest normal
/// float. A fixed sequence of float operations, like ExpNonPositive.
inline float Log(float x) {
  // x = 2^e m with m in [2/3, 4/3): ln m = 2 artanh(s) at s = (m - 1) / (m + 1), |s| <= 1/5.
  constexpr std::int32_t kTwoThirds = 0x3F2AAAAB;
  const std::int32_t above = std::bit_cast<std::int32_t>(x) - kTwoThirds;
  const auto e = static_cast<float>(above >> 23);
  const float m = std::bit_cast<float>((above & 0x007FFFFF) + kTwoThirds);
  const float s = (m - 1.0F) / (m + 1.0F);
  const float t = s * s;
  float series = 1.0F / 9;
  series = series * t + 1.0F / 7;
  series = series * t + 1.0F / 5;
  series = series * t + 1.0F / 3;
  const float log = e * 0.693359375F + (2 * s + (2 * s * t * series - e * 2.12194440e-4F));
  constexpr float kLeast = std::numeric_limits<float>::min();
  return x >= kLeast ? log : -std::numeric_limits<float>::infinity();
}

/// Replaces each value, none of them negative, by its `Log`.
void TakeLogs(std::span<float> values);

}  // namespace foretoken
