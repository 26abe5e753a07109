#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/tensor_view.h"

namespace foretoken {

// Rows of q_proj and k_proj, whose heads are rotated: folders have a head's first half before its
// second, for a rotation of number i with i + head_dim / 2; GGUF files let the two alternate, for a
// rotation of neighbours. Rows are whole blocks of any format.

/// From the order of GGUF files to that of folders.
std::vector<std::byte> HalvesApart(const TensorView& tensor, std::int64_t head_dim);
/// And back.
std::vector<std::byte> HalvesAlternating(const TensorView& tensor, std::int64_t head_dim);

}  // namespace foretoken
