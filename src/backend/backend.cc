#include "backend/backend.h"

#include "base/check.h"

namespace foretoken {

std::vector<MatrixBand> BandsOf(std::span<const TensorView> parts,
                                WeightFormat (*stored_as)(WeightFormat)) {
  std::vector<MatrixBand> bands;
  for (const TensorView& part : parts) {
    FT_CHECK(part.shape.size() == 2 && part.shape[1] == parts[0].shape[1],
             "stacked matrices differ in width");
    const std::int64_t begin = bands.empty() ? 0 : bands.back().end;
    const WeightFormat format = stored_as(part.format);
    if (bands.empty() || bands.back().format != format) {
      bands.push_back({.format = format, .begin = begin, .end = begin});
    }
    bands.back().end += part.shape[0];
  }
  return bands;
}

Matrix Backend::Pack(std::span<const TensorView> parts) {
  Matrix matrix = MakeStack(parts, 1);
  PackInto(parts, 0, &matrix);
  return matrix;
}

WeightFormat PortableFormat(WeightFormat format) {
  // Floats hold halves exactly.
  return format == WeightFormat::kF16 ? WeightFormat::kF32 : format;
}

void CopyDeltaSlots(KvStore& kv, std::span<const KvMove> moves) {
  const std::int32_t* const places = kv.DeltaPlaces();
  for (int layer = 0; layer < kv.delta.layers; ++layer) {
    for (const KvMove& move : moves) {
      kv.delta.CopySlot(layer, SlotIn(places, move.from), SlotIn(places, move.to));
    }
  }
}

}  // namespace foretoken
