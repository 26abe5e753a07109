#include "core/kv/recent_parts.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {

RecentParts::RecentParts(std::int32_t blocks, std::int32_t places)
    : pool_(places), place_of_(blocks, kNone), block_of_(places, kNone) {}

void RecentParts::Take(std::int32_t block) {
  FT_CHECK(!Has(block), "block {} has a recent part", block);
  if (pool_.free_count() == 0) Clear(block_of_[pool_.FreeOldestIdle()]);
  const std::int32_t place = pool_.Take();
  place_of_[block] = place;
  block_of_[place] = block;
}

void RecentParts::Drop(std::int32_t block, bool keep) {
  const std::int32_t place = place_of_[block];
  pool_.Drop(place, keep);
  if (!keep && pool_.references(place) == 0) Clear(block);
}

void RecentParts::Forget(std::int32_t block) {
  if (!Has(block)) return;
  pool_.FreeIdle(place_of_[block]);
  Clear(block);
}

void RecentParts::Move(std::int32_t from, std::int32_t to) {
  FT_CHECK(Has(from) && !Has(to), "the recent part of block {} does not fit block {}", from, to);
  const std::int32_t place = place_of_[from];
  place_of_[from] = kNone;
  place_of_[to] = place;
  block_of_[place] = to;
}

void RecentParts::Clear(std::int32_t block) {
  block_of_[place_of_[block]] = kNone;
  place_of_[block] = kNone;
}

Status RecentParts::Check() const {
  FT_RETURN_IF_ERROR(pool_.Check());
  std::int64_t held = 0;
  for (std::size_t block = 0; block < place_of_.size(); ++block) {
    const std::int32_t place = place_of_[block];
    if (place == kNone) continue;
    ++held;
    if (place < 0 || place >= pool_.total() || block_of_[place] != std::int32_t(block)) {
      return InternalError("KV cache: place {} does not hold the recent part of block {}", place,
                           block);
    }
  }
  const std::int64_t filled = pool_.total() - pool_.free_count();
  if (held != filled || std::ranges::count(block_of_, kNone) != pool_.free_count()) {
    return InternalError("KV cache: {} recent parts lie in {} places", held, filled);
  }
  return {};
}

}  // namespace foretoken
