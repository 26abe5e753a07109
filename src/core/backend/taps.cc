#include "core/backend/taps.h"

#include <algorithm>

#include "base/numbers/integers.h"

namespace foretoken {

TapStore TapStore::Allocate(const TapShape& shape, std::int64_t slots) {
  return {.shape = shape, .rows = Buffer(Bytes(shape, slots))};
}

std::size_t TapStore::Bytes(const TapShape& shape, std::int64_t slots) {
  return Size(slots * shape.width()) * sizeof(BFloat16);
}

bool TapStore::Has(int point) const {
  return std::ranges::find(shape.points, point) != shape.points.end();
}

void TapStore::Keep(int point, std::span<const RowPlace> places, const float* states) {
  for (std::size_t i = 0; i < shape.points.size(); ++i) {
    if (shape.points[i] != point) continue;
    const float* from = states;
    for (const RowPlace& place : places) {
      BFloat16* const to = Row(place.slot) + static_cast<std::ptrdiff_t>(i) * shape.hidden;
      std::transform(from, from + shape.hidden, to, FloatToBFloat16);
      from += shape.hidden;
    }
  }
}

}  // namespace foretoken
