#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor/tensor_view.h"

namespace foretoken {

/// So many places of a dimension, from the first on.
struct Stretch {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// These of a tensor's rows, which lie along its outermost dimension, one behind the other. Of a
/// format in blocks only where rows are whole blocks.
std::vector<std::byte> GatheredRows(const TensorView& from, std::span<const Stretch> rows);
/// These of a matrix's columns.
std::vector<std::byte> GatheredColumns(const TensorView& from, std::span<const Stretch> columns);

}  // namespace foretoken
