#pragma once

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

}  // namespace foretoken
