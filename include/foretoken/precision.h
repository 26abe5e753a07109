#pragma once

namespace foretoken {

/// How weights and KV are stored, and what inputs of matrices are rounded to. Sums are always in
/// float32 or better.
enum class Precision { kBF16, kF32 };

}  // namespace foretoken
