#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "text/grammar/regular/regular_language.h"

namespace foretoken {

/// A number as people write it: digits with a point at `point` (of 12.5 the digits are 125 and the
/// point is 2), no zeros at either end; the point may lie outside of the digits. Zero has none.
struct Decimal {
  static Decimal Of(double value);  ///< The shortest that reads as `value`, a finite number.
  static Decimal Of(std::int64_t value);
  static Decimal Of(std::uint64_t value);

  std::string Text() const;  ///< Without an exponent.

  bool negative = false;
  std::string digits;
  int point = 0;
};

// Languages of numbers as JSON writes them, without exponents: "-" where negative, a whole part
// without zeros in front, and possibly a point and more digits. Only with DecimalSyntax together do
// the others exclude what is no number at all.

inline constexpr int kDecimalDigits = 16;  ///< On each side of the point, unless bounds need more.

/// Whole numbers, and others too unless `whole`, with up to `digits` before the point.
Result<RegularLanguage> DecimalSyntax(bool whole, int digits);

/// Numbers from `bound` on (above it, if `exclusive`).
Result<RegularLanguage> DecimalsFrom(const Decimal& bound, bool exclusive);

/// Multiples of `divisor`, which must be above zero.
Result<RegularLanguage> DecimalMultiples(const Decimal& divisor);

/// The same number, however it is written.
Result<RegularLanguage> DecimalsEqualTo(const Decimal& value);

}  // namespace foretoken
