#include "core/weights/arrange/gathered_rows.h"

namespace foretoken {

std::vector<std::byte> GatheredRows(const TensorView& from, std::span<const Stretch> rows) {
  const auto row = static_cast<std::int64_t>(from.bytes()) / from.shape.front();
  std::vector<std::byte> made;
  for (const Stretch& stretch : rows) {
    const std::byte* first = from.data + stretch.first * row;
    made.insert(made.end(), first, first + stretch.count * row);
  }
  return made;
}

std::vector<std::byte> GatheredColumns(const TensorView& from, std::span<const Stretch> columns) {
  const std::int64_t rows = from.shape.front();
  const auto row = static_cast<std::int64_t>(from.bytes()) / rows;
  const std::int64_t size = row / from.shape.back();
  std::vector<std::byte> made;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (const Stretch& stretch : columns) {
      const std::byte* first = from.data + i * row + stretch.first * size;
      made.insert(made.end(), first, first + stretch.count * size);
    }
  }
  return made;
}

}  // namespace foretoken
