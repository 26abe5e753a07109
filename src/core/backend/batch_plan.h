#pragma once

#include <cstdint>
#include <span>

namespace foretoken {

/// KV slots in a block, and keys in an attention chunk. Slot s lies in block s / kBlockSize at
/// lane s % kBlockSize. One number for both, so that a block of a sequence's trunk is exactly one
/// chunk of the online softmax and is read in place.
inline constexpr int kBlockSize = 32;

/// Blocks that hold `slots` slots.
constexpr std::int64_t BlocksFor(std::int64_t slots) {
  return (slots + kBlockSize - 1) / kBlockSize;
}

/// Where one row of a pass stands: its logical position, the slot its key and value go to, and how
/// to find the keys of positions 0..position that it attends to.
struct RowPlace {
  std::int32_t position = 0;  ///< Logical position in its sequence; rope and chunking use it.
  std::int32_t slot = 0;      ///< Physical slot for this row's key and value.
  std::int32_t sequence = 0;  ///< Index into `BatchPlan::block_tables`.
  /// Positions [0, trunk_length) are found through the block table: position p is in block
  /// table[p / kBlockSize] at lane p % kBlockSize.
  std::int32_t trunk_length = 0;
  /// Position trunk_length + i is in slot tail_slots[tail_begin + i], up to and including
  /// `position` itself. For a row on the trunk (trunk_length == position + 1) there is no tail.
  std::int32_t tail_begin = 0;
};

/// The placement of all rows of one pass, shared by its layers. Rows of one sequence are adjacent.
/// All memory is borrowed for the duration of a call.
struct BatchPlan {
  std::span<const RowPlace> rows;
  std::span<const std::int32_t* const> block_tables;  ///< One block-id array per sequence.
  std::span<const std::int32_t> tail_slots;
};

}  // namespace foretoken
