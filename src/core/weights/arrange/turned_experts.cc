#include "core/weights/arrange/turned_experts.h"

#include <cstdint>
#include <cstring>

namespace foretoken {
namespace {

// Where the output lies that becomes number `output` of `count`.
std::int64_t PlaceOf(std::int64_t output, std::int64_t count, Outputs outputs) {
  if (outputs == Outputs::kInOrder) return output;
  const std::int64_t half = count / 2;
  return output < half ? 2 * output : 2 * (output - half) + 1;
}

}  // namespace

std::vector<std::byte> Transposed(const TensorView& stacked, Outputs outputs) {
  const std::int64_t experts = stacked.shape[0];
  const std::int64_t inputs = stacked.shape[1];
  const std::int64_t count = stacked.shape[2];
  const std::size_t size = FormatBytes(stacked.format, 1);
  std::vector<std::byte> made(stacked.bytes());
  std::byte* to = made.data();
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    const std::byte* const matrix =
        stacked.data + FormatBytes(stacked.format, expert * inputs * count);
    for (std::int64_t output = 0; output < count; ++output) {
      const std::byte* from = matrix + FormatBytes(stacked.format, PlaceOf(output, count, outputs));
      const std::size_t step = FormatBytes(stacked.format, count);
      for (std::int64_t i = 0; i < inputs; ++i, from += step, to += size) {
        std::memcpy(to, from, size);
      }
    }
  }
  return made;
}

std::vector<std::byte> InOrder(const TensorView& stacked) {
  const std::int64_t count = stacked.shape[1];
  const std::size_t size =
      FormatBytes(stacked.format, stacked.shape.size() > 2 ? stacked.shape[2] : 1);
  std::vector<std::byte> made(stacked.bytes());
  std::byte* to = made.data();
  for (std::int64_t expert = 0; expert < stacked.shape[0]; ++expert) {
    for (std::int64_t output = 0; output < count; ++output, to += size) {
      const std::int64_t place = expert * count + PlaceOf(output, count, Outputs::kInTurns);
      std::memcpy(to, stacked.data + static_cast<std::size_t>(place) * size, size);
    }
  }
  return made;
}

}  // namespace foretoken
