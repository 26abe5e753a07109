#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/batch_plan.h"
#include "backend/delta/delta_rule.h"

namespace foretoken {

/// A step of what every head of a gated delta layer does in a pass, with a state in hand.
struct DeltaStep {
  enum class Kind : std::uint8_t {
    kOpen,   ///< Go on in the state of block `at`, which becomes that of block `from` first.
    kFork,   ///< Go on in a copy of the state of block `from`.
    kApply,  ///< Take in the position in slot `at`.
    kRow,    ///< Row `at` reads the state, which is that before it.
    kSave,   ///< Copy the state in hand to block `at`.
  };
  static constexpr std::int32_t kNone = -1;  ///< As `from`: a state of zeros.

  Kind kind = Kind::kRow;
  std::int32_t at = 0;
  std::int32_t from = 0;

  bool operator==(const DeltaStep&) const = default;
};

/// Says how the heads of a layer come to the state before each row of a pass. The state after a
/// position is one step away from that before it, always the same one, so its bits are those of its
/// path alone, wherever a walk begins. It begins at the states that blocks hold: those of the trunk
/// before a sequence's first row move on to there, rows are taken in on a copy, and blocks of the
/// trunk that they fill get their states.
class DeltaWalk {
 public:
  /// Of a layer of `store`, which forgets what rows write and counts what the steps will have
  /// applied: every head is to do them. Steps name slots and blocks as the store does, whose
  /// `places` are those of KvStore::DeltaPlaces.
  void Plan(const BatchPlan& plan, const std::int32_t* places, int layer, DeltaStore* store);

  std::span<const DeltaStep> steps() const { return steps_; }

 private:
  void PlanSequence(std::size_t begin, std::size_t end);
  void Advance(const std::int32_t* table, std::int32_t length);
  // Where the block of a position on the trunk lies.
  std::int32_t BlockOf(const std::int32_t* table, std::int32_t position) const;
  std::int32_t SlotBefore(const RowPlace& row) const;
  void Add(DeltaStep::Kind kind, std::int32_t at, std::int32_t from = 0) {
    steps_.push_back({kind, at, from});
  }

  // Of the call.
  const BatchPlan* plan_ = nullptr;
  const std::int32_t* places_ = nullptr;
  std::int8_t* applied_ = nullptr;
  std::vector<DeltaStep> steps_;
  std::vector<std::int32_t> trunks_;  // Of a sequence's rows.
};

/// The slot of position `p` on the path to a row, among those of the store.
std::int32_t SlotOnPath(const BatchPlan& plan, const std::int32_t* places, const RowPlace& row,
                        std::int32_t p);

}  // namespace foretoken
