#include "text/grammar/regular/decimal_language.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "base/numbers/integers.h"

namespace foretoken {
namespace {

constexpr int kMaxDivisor = 20000;  // As a whole number, its point left out.

Decimal FromText(std::string text) {
  Decimal decimal;
  if (text.starts_with('-')) {
    decimal.negative = true;
    text.erase(0, 1);
  }
  int exponent = 0;
  if (const std::size_t at = text.find('e'); at != text.npos) {
    const char* const begin = text.data() + at + (text[at + 1] == '+' ? 2 : 1);
    std::from_chars(begin, text.data() + text.size(), exponent);
    text.resize(at);
  }
  const std::size_t dot = std::min(text.find('.'), text.size());
  decimal.point = static_cast<int>(dot) + exponent;
  if (dot < text.size()) text.erase(dot, 1);
  const std::size_t zeros = std::min(text.find_first_not_of('0'), text.size());
  decimal.digits = text.substr(zeros, text.find_last_not_of('0') + 1 - zeros);
  decimal.point -= static_cast<int>(zeros);
  if (decimal.digits.empty()) decimal = {};
  return decimal;
}

template <typename Key>
using Steps = std::vector<std::pair<std::uint32_t, Key>>;

// A step for each digit, one for '.' and one for anything else.
template <typename Key, typename OfDigit>
Steps<Key> NumberSteps(const Key& dot, const Key& other, OfDigit of_digit) {
  Steps<Key> steps{{'.' - 1, other}, {'.', dot}, {'0' - 1, other}};
  for (int digit = 0; digit < 10; ++digit) steps.emplace_back('0' + digit, of_digit(digit));
  steps.emplace_back(kLastCodePoint, other);
  return steps;
}

int DigitAt(const Decimal& decimal, int place) {  // 0 is the first before which the point would be.
  const int at = decimal.point + place;
  return at >= 0 && at < std::ssize(decimal.digits) ? decimal.digits[at] - '0' : 0;
}

// Unsigned numbers that compare with `bound` (its sign ignored) as `allowed` says of less, equal
// and greater.
Result<RegularLanguage> Compared(const Decimal& bound, bool less, bool equal, bool greater) {
  // How many digits stood before the point, how many after it (-1: no point yet), and how the
  // digits compare so far. What is longer before the point is greater.
  using Key = std::tuple<int, int, int>;
  const int whole = std::max(1, bound.point);
  const int fraction = std::max(0, Int(bound.digits.size()) - bound.point);
  const Key dead{-1, 0, 0};
  const auto compared = [](int digit, int with) { return digit < with ? -1 : digit > with; };
  const auto at_point = [&](int count, int order) { return count < whole ? -1 : order; };
  const auto steps = [&](const Key& key) -> Steps<Key> {
    const auto [count, after, order] = key;
    if (count < 0) return {{kLastCodePoint, dead}};
    const Key dot = after < 0 && count > 0 ? Key{whole, 0, at_point(count, order)} : dead;
    return NumberSteps(dot, dead, [&, count = count, after = after, order = order](int digit) {
      if (after >= 0) {
        const int next = order != 0 ? order : compared(digit, DigitAt(bound, after));
        return Key{whole, std::min(after + 1, fraction), next};
      }
      if (count >= whole) return Key{whole, -1, 1};
      const int next = order != 0 ? order : compared(digit, DigitAt(bound, count - whole));
      return Key{count + 1, -1, next};
    });
  };
  return RegularLanguage::Explore(Key{0, -1, 0}, steps, [&](const Key& key) {
    const auto [count, after, order] = key;
    if (count <= 0) return false;
    int final_order = after < 0 ? at_point(count, order) : order;
    // What the bound has more digits of is greater, unless they are all zeros: it has none of
    // those.
    if (final_order == 0 && std::max(after, 0) < fraction) final_order = -1;
    return final_order < 0 ? less : final_order > 0 ? greater : equal;
  });
}

// `positive`, and `negative` with a '-' before it.
Result<RegularLanguage> Signed(const RegularLanguage& positive, const RegularLanguage& negative) {
  struct Key {
    int of;  // 0: before the first character; 1: in `positive`; 2: in `negative`.
    int state;
    auto operator<=>(const Key&) const = default;
  };
  const auto steps = [&](const Key& key) {
    Steps<Key> list;
    const auto& language = key.of == 2 ? negative : positive;
    for (const auto& [last, target] : language.states()[key.state].steps) {
      const Key next{std::max(key.of, 1), target};
      const std::uint32_t begin = list.empty() ? 0 : list.back().first + 1;
      if (key.of == 0 && begin <= '-' && '-' <= last) {
        if (begin < '-') list.emplace_back('-' - 1, next);
        list.emplace_back('-', Key{2, 0});
      }
      if (list.empty() || list.back().first < last) list.emplace_back(last, next);
    }
    return list;
  };
  return RegularLanguage::Explore(Key{0, 0}, steps, [&](const Key& key) {
    return (key.of == 2 ? negative : positive).states()[key.state].accepts;
  });
}

}  // namespace

Decimal Decimal::Of(double value) { return FromText(fmt::format("{}", value)); }
Decimal Decimal::Of(std::int64_t value) { return FromText(fmt::format("{}", value)); }
Decimal Decimal::Of(std::uint64_t value) { return FromText(fmt::format("{}", value)); }

std::string Decimal::Text() const {
  std::string text = digits;
  const int missing = std::max(0, 1 - point);  // Zeros in front, one of them before the point.
  text.insert(0, missing, '0');
  const int whole = point + missing;
  if (whole > std::ssize(text)) text.resize(whole, '0');
  if (whole < std::ssize(text)) text.insert(whole, 1, '.');
  return (negative ? "-" : "") + text;
}

Result<RegularLanguage> DecimalSyntax(bool whole, int digits) {
  // Nothing so far, "-", "0" before a point, digits before a point (from kDigits on), a point, and
  // digits after it.
  enum : int { kDead, kStart, kMinus, kZero, kDigits };
  const int point = kDigits + digits;
  const auto steps = [&](int key) -> Steps<int> {
    if (key == kDead) return {{kLastCodePoint, kDead}};
    const bool may_have_point = !whole && key >= kZero && key < point;
    auto list = NumberSteps<int>(may_have_point ? point : kDead, kDead, [&](int digit) -> int {
      if (key == kStart || key == kMinus) {
        const int zero = whole && key == kMinus ? kDead : kZero;
        return digit == 0 ? zero : kDigits;
      }
      const int last = key < point ? point - 1 : point + kDecimalDigits;
      return key == kZero || key == last ? kDead : key + 1;
    });
    if (key == kStart) list[0].second = kMinus;  // '-' is the character before '.'.
    list.insert(list.begin(), {'-' - 1, kDead});
    return list;
  };
  return RegularLanguage::Explore(kStart + 0, steps,
                                  [&](int key) { return key >= kZero && key != point; });
}

Result<RegularLanguage> DecimalsFrom(const Decimal& bound, bool exclusive) {
  if (bound.negative) {  // All that are not negative, and those that are no further from zero.
    FT_ASSIGN_OR_RETURN(const auto magnitudes, Compared(bound, true, !exclusive, false));
    FT_ASSIGN_OR_RETURN(const auto all, Compared({}, true, true, true));
    return Signed(all, magnitudes);
  }
  FT_ASSIGN_OR_RETURN(const auto magnitudes, Compared(bound, false, !exclusive, true));
  // The only negative number that can be among them is -0.
  const bool zero = bound.digits.empty() && !exclusive;
  FT_ASSIGN_OR_RETURN(const auto zeros, Compared({}, false, zero, false));
  return Signed(magnitudes, zeros);
}

Result<RegularLanguage> DecimalMultiples(const Decimal& divisor) {
  // Digits are read up to the divisor's last place; what comes after it must be zeros.
  const int places = std::max(0, Int(divisor.digits.size()) - divisor.point);
  const int zeros = std::max(0, divisor.point - Int(divisor.digits.size()));
  std::int64_t modulus = 0;
  for (const char digit : divisor.digits + std::string(std::min(zeros, 6), '0')) {
    modulus = modulus * 10 + (digit - '0');
    if (modulus > kMaxDivisor || zeros > 6) {
      return Invalid("has more digits than are supported ({} in all, as {} has)", kMaxDivisor,
                     kMaxDivisor);
    }
  }
  // The remainder, and how many digits stood after the point (-1: no point yet).
  using Key = std::pair<int, int>;
  const Key dead{-1, 0};
  const auto steps = [&](const Key& key) -> Steps<Key> {
    const auto [rest, after] = key;
    if (rest < 0) return {{kLastCodePoint, dead}};
    auto list = NumberSteps(after < 0 ? Key{rest, 0} : dead, dead,
                            [&, rest = rest, after = after](int digit) {
                              if (after == places) return digit == 0 ? Key{rest, after} : dead;
                              return Key{static_cast<int>((rest * 10LL + digit) % modulus),
                                         after < 0 ? after : after + 1};
                            });
    if (rest == 0 && after < 0) list[0].second = key;  // '-' is the character before '.'.
    list.insert(list.begin(), {'-' - 1, dead});
    return list;
  };
  return RegularLanguage::Explore(Key{0, -1}, steps, [&](const Key& key) {
    std::int64_t rest = key.first;
    for (int i = std::max(0, key.second); i < places && rest > 0; ++i) rest = rest * 10 % modulus;
    return rest == 0;
  });
}

Result<RegularLanguage> DecimalsEqualTo(const Decimal& value) {
  FT_ASSIGN_OR_RETURN(const auto magnitude, Compared(value, false, true, false));
  FT_ASSIGN_OR_RETURN(const auto none, Compared(value, false, false, false));
  if (value.digits.empty()) return Signed(magnitude, magnitude);
  return value.negative ? Signed(none, magnitude) : Signed(magnitude, none);
}

}  // namespace foretoken
