#include "core/weights/arrange/rotated_rows.h"

#include <cstring>
#include <utility>

namespace foretoken {
namespace {

// `row` says of each row, given where it lies in either order, where it goes to and comes from.
template <typename Row>
std::vector<std::byte> Reordered(const TensorView& tensor, std::int64_t head_dim, std::int64_t dims,
                                 const Row& row) {
  const std::size_t row_bytes =
      FormatBytes(tensor.format, tensor.shape.size() == 1 ? 1 : tensor.shape[1]);
  const std::int64_t half = dims / 2;
  std::vector<std::byte> rows(tensor.bytes());
  for (std::int64_t apart = 0; apart < tensor.shape[0]; ++apart) {
    const std::int64_t in_head = apart % head_dim;
    const std::int64_t rotated = in_head % half * 2 + in_head / half;
    const std::int64_t alternating = apart - in_head + (in_head < dims ? rotated : in_head);
    const auto [to, from] = row(apart, alternating);
    std::memcpy(rows.data() + to * row_bytes, tensor.data + from * row_bytes, row_bytes);
  }
  return rows;
}

}  // namespace

std::vector<std::byte> HalvesApart(const TensorView& tensor, std::int64_t head_dim,
                                   std::int64_t dims) {
  return Reordered(tensor, head_dim, dims, [](std::int64_t apart, std::int64_t alternating) {
    return std::pair(apart, alternating);
  });
}

std::vector<std::byte> HalvesAlternating(const TensorView& tensor, std::int64_t head_dim,
                                         std::int64_t dims) {
  return Reordered(tensor, head_dim, dims, [](std::int64_t apart, std::int64_t alternating) {
    return std::pair(alternating, apart);
  });
}

}  // namespace foretoken
