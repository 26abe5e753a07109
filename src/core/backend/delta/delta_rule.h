#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/backend/batch_plan.h"
#include "core/tensor/buffer.h"

namespace foretoken {

/// Geometry of a layer whose heads remember what they have seen in a state each, by the gated delta
/// rule. A value head reads and writes its state by the key head KeyOf(head).
///
/// A row of inputs is [all queries | all keys | all values | all gates | value_heads rates of
/// writing | value_heads rates of forgetting]: queries and keys [key_heads, key_dim], values and
/// gates [value_heads, value_dim].
struct DeltaShape {
  int key_heads = 0;  ///< 0: no such layer.
  int value_heads = 0;
  int key_dim = 0;
  int value_dim = 0;
  int taps = 0;  ///< Positions that the convolution before the heads reads, a row's own included.

  /// Value heads take key heads in turns; else those of a key head are neighbours.
  bool keys_in_turns = false;

  int KeyOf(int value_head) const {
    return keys_in_turns ? value_head % key_heads : value_head / (value_heads / key_heads);
  }
  int key_width() const { return key_heads * key_dim; }
  int value_width() const { return value_heads * value_dim; }
  /// What is convolved: queries, keys and values.
  int conv_width() const { return 2 * key_width() + value_width(); }
  int row_width() const { return conv_width() + value_width() + 2 * value_heads; }
  /// What is kept of a position: what is convolved, then keys, what they write, and how much of the
  /// state is left ([value_heads]).
  std::int64_t slot_width() const {
    return std::int64_t{conv_width()} + key_width() + value_width() + value_heads;
  }
  /// The states of all heads, [value_heads, key_dim, value_dim].
  std::int64_t state_width() const { return std::int64_t{key_dim} * value_width(); }
  bool operator==(const DeltaShape&) const = default;
};

/// What such a layer has learned besides its products.
struct DeltaWeights {
  const float* taps = nullptr;       ///< [taps, conv_width], the oldest position first.
  const float* rates = nullptr;      ///< [value_heads]: how fast heads forget.
  const float* rate_bias = nullptr;  ///< [value_heads]: what is added to rates of forgetting.
};

/// What a head does at a position.
struct DeltaGates {
  float decay = 0;  ///< How much of the state is left.
  float write = 0;  ///< How much of what is to be written is.
};
/// From a row's rates of writing and forgetting and the head's own, by portable arithmetic.
DeltaGates GatesOf(float write, float forget, float rate, float rate_bias);

/// A state is made of what the last so many positions have kept, a row's own included: a state of a
/// block before, which is the last that is sure to be there after a pass of the largest proposal,
/// none of whose blocks' states was kept.
inline constexpr int kDeltaReach = 4 * kBlockSize + 1;

/// What all such layers of a model, which are of one shape, keep: float32 whatever the KV's format.
///
/// A position's own numbers lie in its slot and move with it, as keys and values do. A block also
/// has room for the states after its first `applied` positions: a cache of what its slots and those
/// of the blocks before it say, which is made again where it is not there. Whoever writes a slot
/// forgets a state that has seen more of the block than what lies before it. Blocks and slots are
/// those of KvStore::DeltaPlaces.
struct DeltaStore {
  DeltaShape shape;
  int layers = 0;
  std::int64_t blocks = 0;
  Buffer slots;                      ///< [layers, blocks * kBlockSize, slot_width]
  Buffer states;                     ///< [layers, blocks, state_width]
  std::vector<std::int8_t> applied;  ///< [layers, blocks]

  static DeltaStore Allocate(const DeltaShape& shape, int layers, std::int64_t blocks);
  static std::size_t Bytes(const DeltaShape& shape, int layers, std::int64_t blocks);

  float* Slot(int layer, std::int32_t slot);
  float* State(int layer, std::int32_t block, int value_head);
  std::int8_t* Applied(int layer) { return applied.data() + layer * blocks; }

  /// Slot `slot` of a layer is about to be written.
  void Forget(int layer, std::int32_t slot);
  void CopySlot(int layer, std::int32_t from, std::int32_t to);
};

}  // namespace foretoken
