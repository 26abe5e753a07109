#include "core/kv/tree_kv.h"

#include <algorithm>
#include <limits>

#include "base/static_vector.h"

namespace foretoken {
namespace {

// Nodes have 8-bit numbers.
using Moves = StaticVector<KvMove, std::numeric_limits<std::int8_t>::max() + 1>;

void Move(const Moves& moves, KvMemory memory) {
  if (!moves.empty()) memory.backend->CopyKv(*memory.store, moves);
}

}  // namespace

KvTree::KvTree(std::int32_t root, std::span<const std::int8_t> parents)
    : root_(root), parents_(parents) {
  const int nodes = parents.size();
  while (chain_ < nodes && parents[chain_] == chain_) ++chain_;
}

std::int32_t RowPlacer::Table() {
  if (table_ < 0) {
    table_ = static_cast<std::int32_t>(block_tables_->size());
    block_tables_->push_back(kv_->blocks.data());
  }
  return table_;
}

std::int32_t RowPlacer::AppendPath(const KvTree& tree, int node) {
  const auto begin = static_cast<std::ptrdiff_t>(tail_slots_->size());
  for (; node != 0; node = tree.parent(node)) {
    tail_slots_->push_back(kv_->SlotOf(tree.root() + node));
  }
  std::reverse(tail_slots_->begin() + begin, tail_slots_->end());
  return static_cast<std::int32_t>(tail_slots_->size()) - static_cast<std::int32_t>(begin);
}

RowPlace RowPlacer::Committed(std::int32_t position) {
  return {.position = position,
          .slot = kv_->SlotOf(position),
          .sequence = Table(),
          .trunk_length = position + 1,
          .tail_begin = 0};
}

RowPlace RowPlacer::Node(const KvTree& tree, int node) {
  if (tree.OnTrunk(node)) return Committed(tree.root() + node);
  const auto tail = static_cast<std::int32_t>(tail_slots_->size());
  const std::int32_t depth = AppendPath(tree, node);
  return {.position = tree.root() + depth,
          .slot = tail_slots_->back(),
          .sequence = Table(),
          .trunk_length = tree.root() + 1,
          .tail_begin = tail};
}

RowPlace RowPlacer::Branch(const KvTree& tree, int node, const SequenceKv& scratch,
                           std::span<const std::int16_t> rows) {
  const auto tail = static_cast<std::int32_t>(tail_slots_->size());
  const bool on_trunk = tree.OnTrunk(node);
  const std::int32_t depth = on_trunk ? node : AppendPath(tree, node);
  for (const std::int16_t row : rows) tail_slots_->push_back(scratch.SlotOf(row));
  return {.position = tree.root() + depth + static_cast<std::int32_t>(rows.size()),
          .slot = tail_slots_->back(),
          .sequence = Table(),
          .trunk_length = tree.root() + 1 + (on_trunk ? depth : 0),
          .tail_begin = tail};
}

RowPlace RowPlacer::Block(std::int32_t begin, const SequenceKv& scratch,
                          std::span<const std::int16_t> rows) {
  const auto tail = static_cast<std::int32_t>(tail_slots_->size());
  for (const std::int16_t row : rows) tail_slots_->push_back(scratch.SlotOf(row));
  return {.position = begin + static_cast<std::int32_t>(rows.size()) - 1,
          .slot = tail_slots_->back(),
          .sequence = Table(),
          .trunk_length = begin,
          .tail_begin = tail};
}

void CommitRows(std::int32_t end, SequenceKv* kv) { kv->committed = std::max(kv->committed, end); }

void CommitPath(std::int32_t root, std::span<const std::int8_t> path, KvMemory memory,
                SequenceKv* kv) {
  Moves moves;
  std::int32_t end = root + 1;
  for (const std::int8_t node : path) {
    // Paths ascend, and no node lies before its depth: nothing is overwritten before it is read.
    if (root + node != end) {
      moves.push_back({.from = kv->SlotOf(root + node), .to = kv->SlotOf(end)});
    }
    ++end;
  }
  Move(moves, memory);
  kv->committed = end;
}

void MoveNodes(std::int32_t root, std::span<const MovedNode> nodes, KvMemory memory,
               const SequenceKv& kv) {
  Moves moves;
  for (const MovedNode& moved : nodes) {
    moves.push_back({.from = kv.SlotOf(root + moved.from), .to = kv.SlotOf(root + moved.to)});
  }
  Move(moves, memory);
}

void MoveBranch(std::int32_t root, std::span<const PromotedRow> rows, const SequenceKv& scratch,
                KvMemory memory, const SequenceKv* kv) {
  Moves moves;
  for (const PromotedRow& kept : rows) {
    moves.push_back({.from = scratch.SlotOf(kept.row), .to = kv->SlotOf(root + kept.node)});
  }
  Move(moves, memory);
}

}  // namespace foretoken
