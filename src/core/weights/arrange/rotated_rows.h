#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor/tensor_view.h"

namespace foretoken {

// Rows of q and k, or the numbers of their biases: of each head of `head_dim` the first `dims` are
// rotated. Most have the first half of these before the second, for a rotation of number i with
// i + dims / 2; many GGUF files and some families let the two alternate, for a rotation of
// neighbours. Rows are whole blocks of any format.

/// From halves that alternate to halves that do not.
std::vector<std::byte> HalvesApart(const TensorView& tensor, std::int64_t head_dim,
                                   std::int64_t dims);
/// And back.
std::vector<std::byte> HalvesAlternating(const TensorView& tensor, std::int64_t head_dim,
                                         std::int64_t dims);

}  // namespace foretoken
