#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "foretoken/precision.h"

namespace foretoken {

/// How keys and values are kept, which also says what attention computes with.
enum class KvFormat {
  kBF16,  ///< Queries and the softmax's weights are rounded to BF16 too.
  kF32,
  /// Blocks of 32 numbers of 8 bits with a scale (docs/develop/arithmetic.md), read as they are:
  /// little more than half of BF16's memory. Queries and the softmax's weights are taken in 16
  /// bits.
  kQ8_0,
};
inline constexpr std::size_t kKvFormats = 3;

/// As options and reports write it.
constexpr std::string_view KvFormatName(KvFormat format) {
  return format == KvFormat::kBF16 ? "bf16" : format == KvFormat::kF32 ? "f32" : "q8_0";
}

/// Nothing where `name` is none of those: "auto", say.
constexpr std::optional<KvFormat> ParseKvFormat(std::string_view name) {
  for (const KvFormat format : {KvFormat::kBF16, KvFormat::kF32, KvFormat::kQ8_0}) {
    if (name == KvFormatName(format)) return format;
  }
  return std::nullopt;
}

/// Where nothing is asked for.
constexpr KvFormat UsualKvFormat(Precision precision) {
  return precision == Precision::kF32 ? KvFormat::kF32 : KvFormat::kBF16;
}

}  // namespace foretoken
