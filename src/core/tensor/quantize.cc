#include "core/tensor/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "core/tensor/block_bytes.h"
#include "core/tensor/block_search.h"
#include "core/tensor/half.h"
#include "core/tensor/table_search.h"
#include "core/tensor/weight_block.h"

namespace foretoken {
namespace {

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
  for (int i = 0; i < 32; ++i) {
    block->codes[i] = CodeOf(std::round(values[i] * inverse) + 128, 255);
  }
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
  for (int i = 0; i < 32; ++i) {
    block->codes[i] = CodeOf((values[i] - *low) * inverse + 0.5F, most);
  }
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
    std::memcpy(out + static_cast<std::size_t>(i) * sizeof(T), &stored, sizeof(T));
  }
}

}  // namespace

bool CanStore(WeightFormat format) { return format != WeightFormat::kIQ4_XS; }

void StoreElements(WeightFormat format, const float* values, std::int64_t count, std::byte* out) {
  FT_CHECK(CanStore(format));
  if (format == WeightFormat::kF32) {
    if (count > 0) std::memcpy(out, values, static_cast<std::size_t>(count) * sizeof(float));
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
