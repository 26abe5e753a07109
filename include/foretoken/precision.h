#pragma once

#include <optional>
#include <string_view>

namespace foretoken {

/// How weights are stored, and what inputs of matrices are rounded to. Sums are always in float32
/// or better. How keys and values are kept is another setting (foretoken/kv_format.h).
enum class Precision {
  kBF16,
  kF32,
  /// Weights as they were stored, quantised ones with inputs of 8 bits. The same bits on every
  /// instruction set (docs/develop/arithmetic.md).
  kPortable,
};

/// The version of the portable arithmetic: it changes whenever a bit may.
inline constexpr int kPortableVersion = 1;

/// As options and reports write it.
constexpr std::string_view PrecisionName(Precision precision) {
  return precision == Precision::kBF16 ? "bf16" : precision == Precision::kF32 ? "f32" : "portable";
}

/// Nothing where `name` is none of those: "auto", say.
constexpr std::optional<Precision> ParsePrecision(std::string_view name) {
  for (const Precision precision : {Precision::kBF16, Precision::kF32, Precision::kPortable}) {
    if (name == PrecisionName(precision)) return precision;
  }
  return std::nullopt;
}

}  // namespace foretoken
