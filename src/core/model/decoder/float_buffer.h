#pragma once

#include <algorithm>
#include <cstddef>

#include "core/tensor/buffer.h"

namespace foretoken {

/// Makes room for `floats` numbers; what is there is lost where it grows.
inline void GrowFloats(Buffer& buffer, std::size_t floats) { buffer.Grow(floats * sizeof(float)); }

/// out [rows, 2 * width] = each row's gates, then what they gate, as Backend::GatedMul reads them.
/// `gates` is [rows, width]; rows of `values` begin `stride` behind each other.
inline void LayGatesBeside(const float* gates, const float* values, std::ptrdiff_t stride, int rows,
                           int width, float* out) {
  for (int row = 0; row < rows; ++row, gates += width, values += stride) {
    out = std::copy_n(gates, width, out);
    out = std::copy_n(values, width, out);
  }
}

}  // namespace foretoken
