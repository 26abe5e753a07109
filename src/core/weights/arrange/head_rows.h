#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor/tensor_view.h"

namespace foretoken {

/// How a tensor [heads * (key + value), rank] that makes the keys and values of heads has its rows:
/// head by head those of its key, then those of its value.
struct HeadRows {
  std::int64_t heads = 0;
  std::int64_t key = 0;
  std::int64_t value = 0;
};

/// The rows of keys, transposed: [heads, rank, key]. Of a format that is not in blocks.
std::vector<std::byte> KeyColumns(const TensorView& from, const HeadRows& rows);
/// The rows of values: [heads, value, rank].
std::vector<std::byte> ValueRows(const TensorView& from, const HeadRows& rows);

}  // namespace foretoken
