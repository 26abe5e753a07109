#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/batch_plan.h"
#include "core/backend/delta/delta_rule.h"

namespace foretoken {

/// A step of what every head of a gated delta layer does in a pass with one of its states. A state
/// is a block's, or one of those that last as long as the pass: DeltaStep::Kept.
struct DeltaStep {
  enum class Kind : std::uint8_t {
    kClear,  ///< `state` becomes zeros.
    kCopy,   ///< `state` becomes that of block `at`, or the kept one `at`.
    kApply,  ///< `state` takes in the position in slot `at`.
    kRow,    ///< Row `at` reads `state`, which is that before it.
  };
  /// The state of the pass with number `i`, beside blocks, which count from 0.
  static constexpr std::int32_t Kept(std::int32_t i) { return -1 - i; }

  Kind kind = Kind::kRow;
  std::int32_t state = 0;
  std::int32_t at = 0;

  bool operator==(const DeltaStep&) const = default;
};

/// Says how the heads of a layer come to the state before each row of a pass. The state after a
/// position is one step away from that before it, always the same one, so its bits are those of its
/// path alone, wherever a walk begins. It begins at the states that blocks hold: those of the trunk
/// before a sequence's first row move on to there. From there the paths to rows are a tree, each
/// position of which is taken in once: where several go on, all but the last go on in a copy of the
/// state. Blocks of the trunk that rows fill get their states.
class DeltaWalk {
 public:
  /// Plans a pass through a layer of `store`, which forgets what rows write and counts what the
  /// steps will have applied: every head is to do them. Steps name slots and blocks as the store
  /// does, whose `places` are those of KvStore::DeltaPlaces.
  void Plan(const BatchPlan& plan, const std::int32_t* places, int layer, DeltaStore* store);

  std::span<const DeltaStep> steps() const { return steps_; }
  /// States of the pass that the steps name: as many as open branchings, and one.
  int kept_states() const { return kept_states_; }

 private:
  // A position behind those that a sequence's rows have in common: a row of the pass, or one of an
  // earlier pass.
  struct Node {
    std::int32_t slot = 0;
    std::int32_t row = kNone;
    std::int32_t filled_block = kNone;  // The block of the trunk that it fills, if rows go on.
    std::int32_t first_child = kNone;
    std::int32_t last_child = kNone;
    std::int32_t sibling = kNone;  // The next one.
  };
  static constexpr std::int32_t kNone = -1;

  void PlanSequence(std::size_t begin, std::size_t end);
  void Advance(const std::int32_t* table, std::int32_t length);
  // Where the block of a position on the trunk lies.
  std::int32_t BlockOf(const std::int32_t* table, std::int32_t position) const;
  Node& At(std::int32_t node) { return nodes_[node]; }
  std::int32_t AddChild(std::int32_t parent, std::int32_t slot);
  // The node before a row, which lies behind `rows`; `trunk` positions are before the first node.
  std::int32_t NodeBefore(const RowPlace& row, std::span<const RowPlace> rows, std::int32_t trunk);
  // From `state`, which is that after a node, to all rows behind it; `kept` states are taken.
  void Visit(std::int32_t node, std::int32_t state, std::int32_t kept);
  void Apply(const Node& node, std::int32_t state);
  void Add(DeltaStep::Kind kind, std::int32_t state, std::int32_t at) {
    steps_.push_back({kind, state, at});
  }
  std::int32_t Keep(std::int32_t number);

  // The call of Plan under way.
  const BatchPlan* plan_ = nullptr;
  const std::int32_t* places_ = nullptr;
  std::int8_t* applied_ = nullptr;
  std::vector<DeltaStep> steps_;
  int kept_states_ = 0;
  // The sequence under way.
  std::vector<Node> nodes_;              // The first stands for what all have in common.
  std::vector<std::int32_t> row_nodes_;  // The nodes of the rows so far.
};

/// The slot of position `p` on the path to a row, among those of the store.
std::int32_t SlotOnPath(const BatchPlan& plan, const std::int32_t* places, const RowPlace& row,
                        std::int32_t p);

}  // namespace foretoken
