#include "core/kv/block_bytes.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/numbers/integers.h"

namespace foretoken {

BlockBytes::BlockBytes(KvStore* store) : store_(store) {
  const KvShape& shape = store->shape;
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const bool last = i + 1 == shape.layers.size();
    const KvStore::Begin begin = store->layers[i];
    const std::size_t keys_end = last ? store->keys.bytes() : store->layers[i + 1].keys;
    const std::size_t values_end = last ? store->values.bytes() : store->layers[i + 1].values;
    const std::size_t blocks = shape.BlocksOf(shape.layers[i]);
    const bool recent = shape.KeptApart(shape.layers[i]);
    Add(store->keys.data() + begin.keys, (keys_end - begin.keys) / blocks, recent);
    Add(store->values.data() + begin.values, (values_end - begin.values) / blocks, recent);
  }
  if (shape.taps.width() > 0) {
    Add(store->taps.rows.data(), kBlockSize * shape.taps.width() * sizeof(BFloat16), false);
  }
  DeltaStore& delta = store->delta;
  for (int layer = 0; layer < delta.layers; ++layer) {
    const bool recent = shape.recent_blocks > 0;
    const auto floats = [&](float* begin, std::int64_t of_block) {
      Add(reinterpret_cast<std::byte*>(begin), of_block * sizeof(float), recent);
    };
    floats(delta.Slot(layer, 0), kBlockSize * delta.shape.slot_width());
    floats(delta.State(layer, 0, 0), delta.shape.state_width());
    Add(reinterpret_cast<std::byte*>(delta.Applied(layer)), 1, recent, /*counts=*/true);
  }
  std::ranges::stable_sort(parts_, {}, &Part::recent);
}

void BlockBytes::Add(std::byte* begin, std::size_t bytes, bool recent, bool counts) {
  if (bytes == 0) return;
  parts_.push_back({begin, bytes, recent, counts});
  (recent ? of_recent_ : of_block_) += bytes;
}

std::byte* BlockBytes::At(const Part& part, std::int32_t block) const {
  const std::int32_t place = part.recent ? store_->recent_places[block] : block;
  return part.begin + Size(place) * part.bytes;
}

void BlockBytes::CopyOut(std::int32_t block, bool recent, std::span<std::byte> to) const {
  FT_CHECK(to.size() == of_block_ + (recent ? of_recent_ : 0));
  std::byte* next = to.data();
  for (const Part& part : parts_) {
    if (part.recent && !recent) break;
    std::memcpy(next, At(part, block), part.bytes);
    next += part.bytes;
  }
}

void BlockBytes::CopyIn(std::span<const std::byte> from, bool recent, std::int32_t block) {
  FT_CHECK(from.size() == of_block_ + (recent ? of_recent_ : 0));
  const std::byte* next = from.data();
  for (const Part& part : parts_) {
    if (part.recent && !recent) break;
    std::memcpy(At(part, block), next, part.bytes);
    next += part.bytes;
  }
}

bool BlockBytes::AreSound(std::span<const std::byte> bytes, bool recent) const {
  if (bytes.size() != of_block_ + (recent ? of_recent_ : 0)) return false;
  const std::byte* next = bytes.data();
  for (const Part& part : parts_) {
    if (part.recent && !recent) break;
    if (part.counts && static_cast<int>(*next) > kBlockSize) return false;
    next += part.bytes;
  }
  return true;
}

}  // namespace foretoken
