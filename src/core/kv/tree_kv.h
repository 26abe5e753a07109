#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/batch_plan.h"
#include "core/kv/kv_cache.h"

namespace foretoken {

/// The tree of proposed tokens below a sequence's last committed one: node 0 is that one, at
/// position `root`; node i + 1 hangs below node parents[i] <= i. Borrows the parents.
///
/// The KV of node i lies i slots behind the root's, whatever its depth, so the nodes that are a
/// chain from the root on are on the trunk already. No row of a tree writes where committed
/// positions lie: what an outcome does not keep is rolled back by being forgotten, and a pass that
/// is given up has spoilt nothing.
class KvTree {
 public:
  KvTree(std::int32_t root, std::span<const std::int8_t> parents);

  std::int32_t root() const { return root_; }
  int parent(int node) const { return parents_[node - 1]; }
  /// Whether `node` and all on its path lie on the trunk.
  bool OnTrunk(int node) const { return node <= chain_; }

 private:
  std::int32_t root_;
  std::span<const std::int8_t> parents_;
  int chain_ = 0;  // The last of the first nodes that are a chain.
};

/// Says where rows of one sequence stand in a pass, for a batch's block tables and tail slots. The
/// first row adds the sequence's table, so one placer's rows are adjacent in the batch. Whoever
/// places a row has reserved its position.
class RowPlacer {
 public:
  RowPlacer(const SequenceKv& kv, std::vector<const std::int32_t*>* block_tables,
            std::vector<std::int32_t>* tail_slots)
      : kv_(&kv), block_tables_(block_tables), tail_slots_(tail_slots) {}

  /// The row of a committed token.
  RowPlace Committed(std::int32_t position);
  /// The row of a node below the root, whose ancestors have their KV or come before it.
  RowPlace Node(const KvTree& tree, int node);
  /// A row of a branch that continues the tree below `node`. `rows` are the slots in `scratch` of
  /// the branch's rows up to this one, its own last.
  RowPlace Branch(const KvTree& tree, int node, const SequenceKv& scratch,
                  std::span<const std::int16_t> rows);
  /// A row of a block whose first one stands at position `begin`, likewise.
  RowPlace Block(std::int32_t begin, const SequenceKv& scratch, std::span<const std::int16_t> rows);

 private:
  std::int32_t Table();
  // Appends the slots of the path from below the root to `node`. Returns how many there are.
  std::int32_t AppendPath(const KvTree& tree, int node);

  const SequenceKv* kv_;
  std::vector<const std::int32_t*>* block_tables_;
  std::vector<std::int32_t>* tail_slots_;
  std::int32_t table_ = -1;
};

/// The KV of a model's sequences and who can move it.
struct KvMemory {
  Backend* backend;
  KvStore* store;
};

/// The rows of all committed tokens below position `end` have been computed.
void CommitRows(std::int32_t end, SequenceKv* kv);

/// The outcome of a tree whose root is at `root`: the nodes of `path`, from below the root on, are
/// committed now, as the positions behind it. All others are rolled back.
void CommitPath(std::int32_t root, std::span<const std::int8_t> path, KvMemory memory,
                SequenceKv* kv);

/// A node of a tree that gets another number.
struct MovedNode {
  std::int8_t from;
  std::int8_t to;
};

/// The tree below `root` loses nodes and its others close up: their rows move in the order given,
/// each towards the root.
void MoveNodes(std::int32_t root, std::span<const MovedNode> nodes, KvMemory memory,
               const SequenceKv& kv);

/// A row of a branch that becomes a node of the tree.
struct PromotedRow {
  std::int16_t row;  ///< Its slot in the scratch sequence.
  std::int16_t node;
};

/// A branch was prepared for the outcome: its rows become those of the tree at and below the new
/// root at `root`.
void MoveBranch(std::int32_t root, std::span<const PromotedRow> rows, const SequenceKv& scratch,
                KvMemory memory, const SequenceKv* kv);

}  // namespace foretoken
