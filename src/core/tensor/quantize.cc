#include "core/tensor/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "core/tensor/block_bytes.h"
#include "core/tensor/block_search.h"
#include "core/tensor/half.h"
#include "core/tensor/weight_block.h"

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

// The integers of a block of IQ4_NL or MXFP4, formats of 32 elements and one scale whose codes
// stand for the values of a table, that come near to `values`, all finite: scales are tried for
// the least square error.
WeightBlock SearchTableBlock(WeightFormat format, const float* values) {
  FT_CHECK(format == WeightFormat::kIQ4_NL || format == WeightFormat::kMXFP4);
  const float extreme = *std::max_element(
      values, values + kElements, [](float a, float b) { return std::abs(a) < std::abs(b); });
  return format == WeightFormat::kIQ4_NL ? SearchHalf(values, extreme)
                                         : SearchPower(values, extreme);
}

constexpr std::uint16_t kHalfNan = 0x7E00;

float InverseOf(float scale) { return scale == 0 ? 0.0F : 1.0F / scale; }

// Rounding may end beyond the last code, and an infinite inverse anywhere: a NaN becomes 0.
std::uint8_t CodeOf(float value, int most) {
  return static_cast<std::uint8_t>(std::min(std::max(0.0F, value), static_cast<float>(most)));
}

// Codes from -127 to 127, the largest magnitude at one of the ends.
void QuantizeQ8_0(const float* values, WeightBlock* block) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(values[i]));
  const float scale = largest / 127;
  const float inverse = InverseOf(scale);
  for (int i = 0; i < 32; ++i) block->codes[i] = CodeOf(std::round(values[i] * inverse) + 128, 255);
  block->scale = FloatToHalf(scale);
}

// The element of largest magnitude, the first of several, becomes the lowest value.
void QuantizeSigned(const WeightCodes& meaning, const float* values, WeightBlock* block) {
  const float* largest = std::max_element(
      values, values + 32, [](float a, float b) { return std::abs(a) < std::abs(b); });
  const float scale = *largest / static_cast<float>(-meaning.offset);
  const float inverse = InverseOf(scale);
  const float middle = static_cast<float>(meaning.offset) + 0.5F;
  for (int i = 0; i < 32; ++i) {
    block->codes[i] = CodeOf(values[i] * inverse + middle, (1 << meaning.bits) - 1);
  }
  block->scale = FloatToHalf(scale);
}

// From the smallest element in equal steps to the largest.
void QuantizeFromMinimum(const WeightCodes& meaning, const float* values, WeightBlock* block) {
  const auto [low, high] = std::minmax_element(values, values + 32);
  const int most = (1 << meaning.bits) - 1;
  const float scale = (*high - *low) / static_cast<float>(most);
  const float inverse = InverseOf(scale);
  for (int i = 0; i < 32; ++i) block->codes[i] = CodeOf((values[i] - *low) * inverse + 0.5F, most);
  block->scale = FloatToHalf(scale);
  block->less = FloatToHalf(*low) ^ kHalfSign;
}

// A block that is NaN throughout; infinite in MXFP4, which has none.
WeightBlock NotFinite(WeightFormat format) {
  WeightBlock block = {};
  block.scale = kHalfNan;
  block.group_scales.fill(1);
  if (format == WeightFormat::kMXFP4) {
    block.scale = 255;
    block.codes.fill(7);
  }
  return block;
}

WeightBlock QuantizeBlock(WeightFormat format, const float* values) {
  const WeightCodes& meaning = CodesOf(format);
  const std::int64_t elements = InfoOf(format).block_elements;
  if (!std::all_of(values, values + elements, [](float value) { return std::isfinite(value); })) {
    return NotFinite(format);
  }
  if (meaning.values != nullptr) return SearchTableBlock(format, values);
  if (elements > meaning.group) return SearchBlock(format, values);
  WeightBlock block = {};
  if (format == WeightFormat::kQ8_0) {
    QuantizeQ8_0(values, &block);
  } else if (meaning.has_less) {
    QuantizeFromMinimum(meaning, values, &block);
  } else {
    QuantizeSigned(meaning, values, &block);
  }
  return block;
}

template <typename T, typename Convert>
void StoreEach(const float* values, std::int64_t count, std::byte* out, const Convert& convert) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T stored = convert(values[i]);
    std::memcpy(out + i * sizeof(T), &stored, sizeof(T));
  }
}

}  // namespace

bool CanStore(WeightFormat format) { return format != WeightFormat::kIQ4_XS; }

void StoreElements(WeightFormat format, const float* values, std::int64_t count, std::byte* out) {
  FT_CHECK(CanStore(format));
  if (format == WeightFormat::kF32) {
    if (count > 0) std::memcpy(out, values, count * sizeof(float));
  } else if (format == WeightFormat::kF16) {
    StoreEach<std::uint16_t>(values, count, out, FloatToHalf);
  } else if (format == WeightFormat::kBF16) {
    StoreEach<BFloat16>(values, count, out, FloatToBFloat16);
  } else {
    const WeightFormatInfo& info = InfoOf(format);
    for (std::int64_t i = 0; i < count; i += info.block_elements, out += info.block_bytes) {
      PackBlock(format, QuantizeBlock(format, values + i), out);
    }
  }
}

}  // namespace foretoken
