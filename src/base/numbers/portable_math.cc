#include "base/numbers/portable_math.h"

#include <array>
#include <cmath>
#include <limits>

namespace foretoken {
namespace {

// log 2 and pi / 2 in parts of 33 bits, so that small integers times a part are exact.
constexpr double kLog2High = 0x1.62e42feep-1;
constexpr double kLog2Low = 0x1.a39ef35793c76p-33;
constexpr std::array kHalfPi = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69};

double Nearest(double x) { return std::nearbyint(x); }

// 1 / n!, for every second n from `first` on.
template <int kTerms>
constexpr std::array<double, kTerms> InverseFactorials(int first, int step) {
  std::array<double, kTerms> terms{};
  double factorial = 1;
  int n = 1;
  for (int i = 0; i < kTerms; ++i) {
    for (; n <= first + i * step; ++n) factorial *= n;
    terms[i] = 1 / factorial;
  }
  return terms;
}

}  // namespace

SinCos PortableSinCos(double angle) {
  const double n = Nearest(angle * 0x1.45f306dc9c883p-1);
  const double r = ((angle - n * kHalfPi[0]) - n * kHalfPi[1]) - n * kHalfPi[2];
  const double square = r * r;
  constexpr int kTerms = 10;
  static constexpr auto kSine = InverseFactorials<kTerms>(1, 2);
  static constexpr auto kCosine = InverseFactorials<kTerms>(0, 2);
  double sine = 0;
  double cosine = 0;
  for (int i = kTerms - 1; i >= 0; --i) {
    const std::size_t at = i;
    const double sign = i % 2 == 0 ? 1 : -1;
    sine = sine * square + sign * kSine[at];
    cosine = cosine * square + sign * kCosine[at];
  }
  sine *= r;
  switch (static_cast<long long>(n) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

double PortableLog(double x) {
  if (x == 0) return -std::numeric_limits<double>::infinity();
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // In [1/2, 1).
  if (mantissa < 0x1.6a09e667f3bcdp-1) {
    mantissa *= 2;
    --exponent;
  }
  // 2 artanh(s), |s| < 0.18.
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  double series = 0;
  for (int n = 25; n >= 3; n -= 2) series = series * square + 1.0 / n;
  const double low = 2 * s * (square * series) + exponent * kLog2Low;
  return exponent * kLog2High + (2 * s + low);
}

double PortableExp(double x) {
  const double n = Nearest(x * 0x1.71547652b82fep+0);
  const double r = (x - n * kLog2High) - n * kLog2Low;
  static constexpr auto kTerms = InverseFactorials<17>(0, 1);
  double series = 0;
  for (int i = 16; i >= 0; --i) series = series * r + kTerms[i];
  return std::ldexp(series, static_cast<int>(n));
}

}  // namespace foretoken
