#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "core/kv/block_pool.h"

namespace foretoken {

/// Where the KV of layers that see a window of positions lies. Of each block this is its *recent
/// part*, in a place of its own, of which there are fewer than blocks: a block has one while rows
/// of a sequence may look there, and afterwards, where its content is worth keeping, until the
/// place is needed. Allocates in its constructor only.
class RecentParts {
 public:
  static constexpr std::int32_t kNone = BlockPool::kNone;

  RecentParts(std::int32_t blocks, std::int32_t places);

  /// [blocks]: the place of each block's part, or kNone. Stays where it is.
  std::span<const std::int32_t> places() const { return place_of_; }
  const BlockPool& pool() const { return pool_; }
  bool Has(std::int32_t block) const { return place_of_[block] != kNone; }
  std::int32_t references(std::int32_t block) const { return pool_.references(place_of_[block]); }
  /// Parts that Take could give now.
  std::int64_t available() const { return pool_.free_count() + pool_.idle_count(); }

  /// Gives `block`, which has none, a part with one reference. Where no place is free, the least
  /// recently used part without a reference gives way.
  void Take(std::int32_t block);

  /// One more reference to a block's part.
  void Retain(std::int32_t block) { pool_.Retain(place_of_[block]); }

  /// One reference less. After the last one the part stays while it can where it is to be kept.
  void Drop(std::int32_t block, bool keep);

  /// The block has lost its content, and with it the part that was kept, if any was.
  void Forget(std::int32_t block);

  /// The part of `from`, with its references, becomes that of `to`, which has none.
  void Move(std::int32_t from, std::int32_t to);

  /// Recounts places and compares; names the first contradiction.
  Status Check() const;

 private:
  void Clear(std::int32_t block);

  BlockPool pool_;  // Which places are free.
  std::vector<std::int32_t> place_of_;
  std::vector<std::int32_t> block_of_;  // The block of each place; kNone where it is free.
};

}  // namespace foretoken
