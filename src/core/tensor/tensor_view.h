#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor/weight_format.h"

namespace foretoken {

/// A borrowed, read-only, contiguous row-major tensor in host memory; valid while its owner (a
/// mapped file, a buffer) lives.
struct TensorView {
  WeightFormat format = WeightFormat::kF32;  ///< Rows of a quantised one are whole blocks.
  std::vector<std::int64_t> shape;
  const std::byte* data = nullptr;

  std::int64_t elements() const {
    std::int64_t count = 1;
    for (const std::int64_t dimension : shape) count *= dimension;
    return count;
  }
  std::size_t bytes() const { return FormatBytes(format, elements()); }
};

/// Copies `count` elements from `begin` on as floats; of a quantised tensor both are whole blocks.
void LoadElements(const TensorView& view, std::int64_t begin, std::int64_t count, float* out);

}  // namespace foretoken
