#pragma once

#include <bit>
#include <cstdint>

namespace foretoken {

// Functions of double precision by additions, multiplications and divisions alone, in one order:
// the same bits on every machine and with every C library, unlike those of <cmath>. Accurate to a
// few units of the last place.

struct SinCos {
  double sin = 0;
  double cos = 0;
};

/// For |angle| up to 2^20.
SinCos PortableSinCos(double angle);

/// The natural logarithm of a finite number from 0 on.
double PortableLog(double x);

/// For results that are normal numbers.
double PortableExp(double x);

/// The same for x <= 0 in a form of which compilers make vectors; below -708, where results would
/// not be normal, the value there. NaN for NaN.
inline double PortableExpNonPositive(double x) {
  constexpr double kRoundToInteger = 0x1.8p52;  // Adding it leaves no fraction bits.
  x = x < -708.0 ? -708.0 : x;
  const double shifted = x * 0x1.71547652b82fep+0 + kRoundToInteger;
  const double n = shifted - kRoundToInteger;
  const double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  double series = 1;
  for (int term = 13; term > 0; --term) series = 1 + series * (r * (1.0 / term));
  const std::uint64_t exponent =
      (std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(kRoundToInteger) + 1023)
      << 52;
  return series * std::bit_cast<double>(exponent);
}

}  // namespace foretoken
