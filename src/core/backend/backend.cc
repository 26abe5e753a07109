#include "core/backend/backend.h"

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

std::size_t Matrix::bytes() const {
  std::size_t sum = data.bytes();
  for (const TensorView& part : borrowed) sum += part.bytes();
  return sum;
}

std::span<const TensorView> Matrix::BorrowedParts(int index) const {
  const std::size_t parts = borrowed.size() / Size(count);
  return std::span(borrowed).subspan(index * parts, parts);
}

Matrix Backend::Borrow(std::vector<TensorView> parts, int count) {
  const std::size_t of_each = parts.size() / Size(count);
  const std::span<const TensorView> all = parts;
  Matrix stack = MakeStack(all.first(of_each), count);
  for (int i = 0; i < count; ++i) {
    PackInto(all.subspan(i * of_each, of_each), i, &stack);
  }
  return stack;
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

std::size_t BytesBesideKv(const KvShape& shape) {
  return DeltaStore::Bytes(shape.delta, shape.delta_layers, shape.DeltaBlocks()) +
         TapStore::Bytes(shape.taps, shape.blocks * kBlockSize);
}

void AllocateBesideKv(KvStore* kv) {
  const KvShape& shape = kv->shape;
  kv->delta = DeltaStore::Allocate(shape.delta, shape.delta_layers, shape.DeltaBlocks());
  kv->taps = TapStore::Allocate(shape.taps, shape.blocks * kBlockSize);
}

void CopyBesideKv(KvStore& kv, std::span<const KvMove> moves) {
  const int width = kv.taps.shape.width();
  for (const KvMove& move : moves) {
    if (width == 0 || move.from == move.to) continue;
    std::copy_n(kv.taps.Row(move.from), width, kv.taps.Row(move.to));
  }
  const std::int32_t* const places = kv.DeltaPlaces();
  for (int layer = 0; layer < kv.delta.layers; ++layer) {
    for (const KvMove& move : moves) {
      kv.delta.CopySlot(layer, SlotIn(places, move.from), SlotIn(places, move.to));
    }
  }
}

}  // namespace foretoken
