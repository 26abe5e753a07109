#include "core/tensor/table_search.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "core/tensor/half.h"

namespace foretoken {
namespace {

constexpr int kElements = 32;

using Table = std::array<std::int8_t, 16>;

// A table in ascending order: its codes, and what lies in the middle between two values.
struct Ascending {
  std::array<std::uint8_t, 16> codes;
  std::array<float, 15> middles;
};

constexpr Ascending InOrder(const Table& values) {
  Ascending order{};
  for (std::uint8_t code = 0; code < 16; ++code) order.codes[code] = code;
  std::sort(order.codes.begin(), order.codes.end(), [&](std::uint8_t a, std::uint8_t b) {
    return values[a] != values[b] ? values[a] < values[b] : a < b;
  });
  for (std::size_t i = 0; i < 15; ++i) {
    order.middles[i] = static_cast<float>(values[order.codes[i]] + values[order.codes[i + 1]]) / 2;
  }
  for (std::size_t i = 1; i < 16; ++i) {  // MXFP4 has two zeros.
    if (values[order.codes[i]] == values[order.codes[i - 1]]) order.codes[i] = order.codes[i - 1];
  }
  return order;
}
constexpr Ascending kNonLinearOrder = InOrder(kNonLinearValues);
constexpr Ascending kFp4Order = InOrder(kFp4Values);

// The nearest codes for one scale. A scale s has the square error s² * square - 2 s * product, not
// counting the squares of the elements; the least at product / square.
struct Choice {
  std::array<std::uint8_t, kElements> codes;
  double product;  // The sum of elements times values of codes.
  double square;   // The sum of squared values of codes.

  double ErrorAt(double scale) const { return scale * scale * square - 2 * scale * product; }
};

// Loops over all elements and sums of four lanes, which compilers make vectors of.
Choice Choose(const Table& values, const Ascending& order, const float* elements, double scale) {
  const double inverse = scale == 0 ? 0 : 1 / scale;
  float numbers[kElements];
  for (int i = 0; i < kElements; ++i) numbers[i] = static_cast<float>(elements[i] * inverse);
  std::int32_t below[kElements] = {};
  for (const float middle : order.middles) {
    for (int i = 0; i < kElements; ++i) below[i] += static_cast<int>(numbers[i] > middle);
  }
  Choice choice{};
  double products[4] = {};
  double squares[4] = {};
  for (int i = 0; i < kElements; ++i) {
    choice.codes[i] = order.codes[below[i]];
    const double value = values[choice.codes[i]];
    products[i % 4] += elements[i] * value;
    squares[i % 4] += value * value;
  }
  choice.product = (products[0] + products[1]) + (products[2] + products[3]);
  choice.square = (squares[0] + squares[1]) + (squares[2] + squares[3]);
  return choice;
}

WeightBlock BlockOf(const Choice& choice, std::uint16_t scale) {
  WeightBlock block = {};
  std::ranges::copy(choice.codes, block.codes.begin());
  block.scale = scale;
  return block;
}

// The element of largest magnitude becomes about one end of the table or the other: cutting it off
// a little, or leaving room beyond it, may do the others more good than it does it harm. The best
// scale and its codes are then fitted to each other.
WeightBlock SearchHalf(const float* elements, float extreme) {
  constexpr double kFurthestFactor = 0.125;
  constexpr double kFactorStep = 1.0 / 32;
  constexpr int kTableFittings = 2;
  constexpr double kLargestHalf = 65504;
  const auto choose = [&](double scale) {
    return Choose(kNonLinearValues, kNonLinearOrder, elements, scale);
  };
  double best = 0;
  double least = 0;  // The error of zeros.
  const auto attempt = [&](double scale) {
    const Choice choice = choose(scale);
    const double fitted = choice.product / choice.square;  // No value is zero.
    if (choice.ErrorAt(fitted) >= least) return;
    best = fitted;
    least = choice.ErrorAt(fitted);
  };
  for (const int end : {kNonLinearValues.front(), kNonLinearValues.back()}) {
    for (double by = 1 - kFurthestFactor; by <= 1 + kFurthestFactor; by += kFactorStep)
      attempt(extreme / (by * end));
  }
  for (int i = 0; i < kTableFittings; ++i) attempt(best);
  const std::uint16_t scale =
      FloatToHalf(static_cast<float>(std::clamp(best, -kLargestHalf, kLargestHalf)));
  return BlockOf(choose(HalfToFloat(scale)), scale);
}

// A power of two that cuts nothing off is at least as good as any larger one, whose values are
// among its own. One that is a quarter of it may be the best, one that is an eighth hardly.
WeightBlock SearchPower(const float* elements, float extreme) {
  constexpr int kBias = 128;  // The bias of stored exponents, for values of up to 12.
  constexpr int kLargest = 254;
  int exponent = 0;
  std::frexp(extreme, &exponent);  // 0.5 to 1 times 2^exponent, so 6 to 12 times 2^(exponent - 4).
  WeightBlock best = {};
  double least = 0;  // The error of zeros.
  for (int power = exponent - 6; power <= exponent - 3; ++power) {
    const int stored = std::clamp(power + kBias, 0, kLargest);
    const double scale = std::ldexp(1.0, stored - kBias);
    const Choice choice = Choose(kFp4Values, kFp4Order, elements, scale);
    if (choice.ErrorAt(scale) >= least) continue;
    best = BlockOf(choice, static_cast<std::uint16_t>(stored));
    least = choice.ErrorAt(scale);
  }
  return best;
}

}  // namespace

WeightBlock SearchTableBlock(WeightFormat format, const float* values) {
  FT_CHECK(format == WeightFormat::kIQ4_NL || format == WeightFormat::kMXFP4);
  const float extreme = *std::max_element(
      values, values + kElements, [](float a, float b) { return std::abs(a) < std::abs(b); });
  return format == WeightFormat::kIQ4_NL ? SearchHalf(values, extreme)
                                         : SearchPower(values, extreme);
}

}  // namespace foretoken
