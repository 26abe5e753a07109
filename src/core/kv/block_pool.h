#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace foretoken {

/// Where every block of a pool stands: on the free list, referenced, or idle, which is
/// unreferenced but kept for its content, in order of last use. Allocates in its constructor only.
class BlockPool {
 public:
  static constexpr std::int32_t kNone = -1;

  explicit BlockPool(std::int32_t blocks);

  std::int32_t total() const { return static_cast<std::int32_t>(states_.size()); }
  std::int64_t free_count() const { return std::ssize(free_); }
  std::int64_t idle_count() const { return idle_count_; }
  std::int32_t references(std::int32_t block) const { return states_[block].references; }

  /// A free block with one reference. The free list must not be empty.
  std::int32_t Take();

  /// One more reference to a referenced or idle block.
  void Retain(std::int32_t block);

  /// One reference less. The last one leaves the block idle, as the most recently used, when its
  /// content is worth keeping, and free otherwise.
  void Drop(std::int32_t block, bool keep);

  /// Frees the least recently used idle block, of which there must be one, and returns it.
  std::int32_t FreeOldestIdle();

  /// Frees an idle block.
  void FreeIdle(std::int32_t block);

  /// Recounts free, idle and referenced blocks; names the first contradiction.
  Status Check() const;

 private:
  enum class Place : std::uint8_t { kFree, kIdle, kReferenced };
  struct State {
    std::int32_t references = 0;
    std::int32_t older = kNone;  // Neighbours among the idle blocks.
    std::int32_t newer = kNone;
    Place place = Place::kFree;
  };

  void LinkNewest(std::int32_t block);
  void Unlink(std::int32_t block);

  std::vector<State> states_;
  std::vector<std::int32_t> free_;
  std::int32_t oldest_ = kNone;
  std::int32_t newest_ = kNone;
  std::int64_t idle_count_ = 0;
};

}  // namespace foretoken
