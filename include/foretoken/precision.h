#pragma once

namespace foretoken {

/// How weights and KV are stored, and what inputs of matrices are rounded to. Sums are always in
/// float32 or better.
enum class Precision {
  kBF16,
  kF32,
  /// Weights as they were stored, quantised ones with inputs of 8 bits; KV in BF16. The same bits
  /// on every instruction set (docs/arithmetic.md).
  kPortable,
};

}  // namespace foretoken
