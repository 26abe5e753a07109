#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/numbers/integers.h"

namespace foretoken {

/// How the elements of a stored tensor are written: one by one, or in blocks of quantised elements
/// that share scales. Those in blocks are the ones of GGUF files, with its names.
enum class WeightFormat : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
};

inline constexpr std::size_t kWeightFormats = 16;

/// A format's name as files spell it, the elements of a block and the bytes that it takes.
struct WeightFormatInfo {
  std::string_view name;
  std::int64_t block_elements;
  std::size_t block_bytes;
};

inline constexpr std::array<WeightFormatInfo, kWeightFormats> kWeightFormatInfos = {{
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"BF16", 1, 2},
    {"Q8_0", 32, 34},
    {"Q4_0", 32, 18},
    {"Q4_1", 32, 20},
    {"Q5_0", 32, 22},
    {"Q5_1", 32, 24},
    {"Q2_K", 256, 84},
    {"Q3_K", 256, 110},
    {"Q4_K", 256, 144},
    {"Q5_K", 256, 176},
    {"Q6_K", 256, 210},
    {"IQ4_NL", 32, 18},
    {"IQ4_XS", 256, 136},
    {"MXFP4", 32, 17},
}};

constexpr const WeightFormatInfo& InfoOf(WeightFormat format) {
  return kWeightFormatInfos[static_cast<std::size_t>(format)];
}
constexpr std::string_view FormatName(WeightFormat format) { return InfoOf(format).name; }
constexpr bool IsQuantized(WeightFormat format) { return InfoOf(format).block_elements > 1; }

/// Bytes of `elements` of them, which are whole blocks.
constexpr std::size_t FormatBytes(WeightFormat format, std::int64_t elements) {
  return Size(elements / InfoOf(format).block_elements) * InfoOf(format).block_bytes;
}

/// The format of that name; none where there is no such one.
std::optional<WeightFormat> ParseWeightFormat(std::string_view name);

/// The elements of `blocks` blocks of a quantised format as floats: exactly what the format's
/// definition gives (the Python package `gguf` is what tests compare with), computed in float32.
void Dequantize(WeightFormat format, const std::byte* data, std::int64_t blocks, float* out);

}  // namespace foretoken
