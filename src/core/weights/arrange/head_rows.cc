#include "core/weights/arrange/head_rows.h"

#include <cstring>

namespace foretoken {

std::vector<std::byte> KeyColumns(const TensorView& from, const HeadRows& rows) {
  const auto rank = static_cast<std::size_t>(from.shape[1]);
  const std::size_t size = from.bytes() / static_cast<std::size_t>(from.elements());
  const auto keys = static_cast<std::size_t>(rows.key);
  std::vector<std::byte> made(static_cast<std::size_t>(rows.heads) * keys * rank * size);
  std::byte* to = made.data();
  for (std::int64_t head = 0; head < rows.heads; ++head) {
    const auto first = static_cast<std::size_t>(head * (rows.key + rows.value));
    for (std::size_t i = 0; i < rank; ++i) {
      for (std::size_t key = 0; key < keys; ++key, to += size) {
        std::memcpy(to, from.data + ((first + key) * rank + i) * size, size);
      }
    }
  }
  return made;
}

std::vector<std::byte> ValueRows(const TensorView& from, const HeadRows& rows) {
  const std::size_t row = from.bytes() / static_cast<std::size_t>(from.shape[0]);
  std::vector<std::byte> made;
  for (std::int64_t head = 0; head < rows.heads; ++head) {
    const auto first = static_cast<std::size_t>(head * (rows.key + rows.value) + rows.key) * row;
    made.insert(made.end(), from.data + first,
                from.data + first + static_cast<std::size_t>(rows.value) * row);
  }
  return made;
}

}  // namespace foretoken
