#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/backend.h"

namespace foretoken {

/// What a store keeps of a block, as bytes one behind the other, whatever the backend: keys, values
/// and taps of its slots; and apart from these its recent part, what layers that see a window and
/// gated delta layers keep, where that lies apart (KvShape::recent_blocks), else it is with the
/// others. Borrows the store.
class BlockBytes {
 public:
  explicit BlockBytes(KvStore* store);

  /// Bytes of a block without its recent part, and of that part; 0 where it does not lie apart.
  std::size_t of_block() const { return of_block_; }
  std::size_t of_recent() const { return of_recent_; }

  /// `to` and `from` have of_block() bytes, and of_recent() more where `recent`: the block then has
  /// a recent part.
  void CopyOut(std::int32_t block, bool recent, std::span<std::byte> to) const;
  void CopyIn(std::span<const std::byte> from, bool recent, std::int32_t block);

  /// Whether bytes of a block could be such a store's: a state is of no more positions than a block
  /// has.
  bool AreSound(std::span<const std::byte> bytes, bool recent) const;

 private:
  // Bytes that lie `bytes` apart from block to block.
  struct Part {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    bool recent = false;
    bool counts = false;  // DeltaStore::applied.
  };

  void Add(std::byte* begin, std::size_t bytes, bool recent, bool counts = false);
  std::byte* At(const Part& part, std::int32_t block) const;

  const KvStore* store_;
  std::vector<Part> parts_;  // Recent ones last.
  std::size_t of_block_ = 0;
  std::size_t of_recent_ = 0;
};

}  // namespace foretoken
