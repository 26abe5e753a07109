#include "core/backend/testing/portable_arithmetic.h"

#include <cmath>
#include <initializer_list>

namespace foretoken::reference {
namespace {

// c[0] r^n + c[1] r^(n - 1) + ..., Horner's way.
float Polynomial(std::initializer_list<float> coefficients, float r) {
  float p = 0;
  bool first = true;
  for (const float c : coefficients) {
    p = first ? c : std::fma(p, r, c);
    first = false;
  }
  return p;
}

float TimesPowerOfTwo(float value, float n) { return std::ldexp(value, static_cast<int>(n)); }

// To the nearest integer, ties to even, for |x| < 2^22.
float Nearest(float x) {
  constexpr float kIntegersBegin = 0x1.8p23F;
  return (x + kIntegersBegin) - kIntegersBegin;
}

template <typename Series>
float Exp2Of(float x, Series series) {
  if (x < -126.0F) return 0;
  const float n = Nearest(x);
  return TimesPowerOfTwo(series(x - n), n);
}

}  // namespace

float SumOf(const Lanes& lanes) {
  Lanes sums = lanes;
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  }
  return sums[0];
}

float Exp(float x) {
  if (x < -87.0F) return 0;
  const float n = Nearest(x * 1.44269504F);
  // x - n log 2, log 2 in two parts.
  const float r = std::fma(n, 2.12194440e-4F, std::fma(n, -0.693359375F, x));
  const float p = Polynomial({1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F}, r);
  return TimesPowerOfTwo(p, n);
}

float Exp2(float x) {
  return Exp2Of(x, [](float r) {
    return Polynomial({1.54035304e-4F, 1.33335581e-3F, 9.61812911e-3F, 5.55041087e-2F,
                       2.40226507e-1F, 6.93147181e-1F, 1.0F},
                      r);
  });
}

float CoarseExp2(float x) {
  return Exp2Of(x, [](float r) {
    return Polynomial({9.61812911e-3F, 5.55041087e-2F, 2.40226507e-1F, 6.93147181e-1F, 1.0F}, r);
  });
}

}  // namespace foretoken::reference
