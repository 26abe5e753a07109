#include "core/backend/delta/delta_walk.h"

#include <algorithm>

#include "base/check.h"
#include "core/backend/backend.h"

namespace foretoken {
namespace {

using Kind = DeltaStep::Kind;

// Positions before a row that are on the trunk.
std::int32_t TrunkBefore(const RowPlace& row) { return std::min(row.trunk_length, row.position); }

}  // namespace

std::int32_t SlotOnPath(const BatchPlan& plan, const std::int32_t* places, const RowPlace& row,
                        std::int32_t p) {
  if (p >= row.trunk_length) {
    return SlotIn(places, plan.tail_slots[row.tail_begin + p - row.trunk_length]);
  }
  const std::int32_t block = plan.block_tables[row.sequence][p / kBlockSize];
  return SlotIn(places, block * kBlockSize + p % kBlockSize);
}

std::int32_t DeltaWalk::BlockOf(const std::int32_t* table, std::int32_t position) const {
  const std::int32_t block = table[position / kBlockSize];
  return places_ == nullptr ? block : places_[block];
}

void DeltaWalk::Plan(const BatchPlan& plan, const std::int32_t* places, int layer,
                     DeltaStore* store) {
  steps_.clear();
  kept_states_ = 0;
  plan_ = &plan;
  places_ = places;
  applied_ = store->Applied(layer);
  for (const RowPlace& row : plan.rows) store->Forget(layer, SlotIn(places, row.slot));
  for (std::size_t begin = 0; begin < plan.rows.size();) {
    std::size_t end = begin + 1;
    while (end < plan.rows.size() && plan.rows[end].sequence == plan.rows[begin].sequence) ++end;
    PlanSequence(begin, end);
    begin = end;
  }
}

void DeltaWalk::Advance(const std::int32_t* table, std::int32_t length) {
  const std::int32_t last = (length - 1) / kBlockSize;
  const auto wanted = [&](std::int32_t i) {
    return i < last ? kBlockSize : length - last * kBlockSize;
  };
  std::int32_t first = last;
  for (; first >= 0; --first) {
    const std::int32_t block = BlockOf(table, first * kBlockSize);
    FT_CHECK(block >= 0, "the state before position {} is not kept", length);
    std::int8_t& applied = applied_[block];
    if (applied > wanted(first)) applied = 0;
    if (applied > 0) break;
  }
  for (std::int32_t i = std::max(first, 0); i <= last; ++i) {
    const std::int32_t block = BlockOf(table, i * kBlockSize);
    if (i == 0 && i > first) Add(Kind::kClear, block, 0);
    if (i > 0 && i > first) Add(Kind::kCopy, block, BlockOf(table, (i - 1) * kBlockSize));
    for (int lane = applied_[block]; lane < wanted(i); ++lane) {
      Add(Kind::kApply, block, block * kBlockSize + lane);
    }
    applied_[block] = static_cast<std::int8_t>(wanted(i));
  }
}

void DeltaWalk::PlanSequence(std::size_t begin, std::size_t end) {
  const std::span<const RowPlace> rows = plan_->rows.subspan(begin, end - begin);
  const std::int32_t* table = plan_->block_tables[rows.front().sequence];
  std::int32_t trunk = TrunkBefore(rows.front());
  for (const RowPlace& row : rows) trunk = std::min(trunk, TrunkBefore(row));
  nodes_.assign(1, {});
  row_nodes_.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int32_t before = NodeBefore(rows[i], rows.first(i), trunk);
    row_nodes_.push_back(AddChild(before, SlotIn(places_, rows[i].slot)));
    At(row_nodes_.back()).row = static_cast<std::int32_t>(begin + i);
  }
  if (trunk > 0) {
    Advance(table, trunk);
    Visit(0, BlockOf(table, trunk - 1), 0);
  } else {
    Add(Kind::kClear, Keep(0), 0);
    Visit(0, Keep(0), 1);
  }
}

std::int32_t DeltaWalk::AddChild(std::int32_t parent, std::int32_t slot) {
  const auto child = static_cast<std::int32_t>(nodes_.size());
  nodes_.push_back({.slot = slot});
  Node& above = At(parent);
  if (above.first_child == kNone) above.first_child = child;
  if (above.last_child != kNone) At(above.last_child).sibling = child;
  above.last_child = child;
  return child;
}

std::int32_t DeltaWalk::NodeBefore(const RowPlace& row, std::span<const RowPlace> rows,
                                   std::int32_t trunk) {
  const std::int32_t shared = TrunkBefore(row);
  // Notes that the node of a position fills a block of the trunk.
  const auto fill = [&](std::int32_t node, std::int32_t position) {
    if ((position + 1) % kBlockSize != 0 || position >= shared) return;
    At(node).filled_block = BlockOf(plan_->block_tables[row.sequence], position);
  };
  if (row.position == trunk) return 0;
  const std::int32_t before = SlotOnPath(*plan_, places_, row, row.position - 1);
  for (std::size_t i = rows.size(); i-- > 0;) {
    if (rows[i].position + 1 != row.position || SlotIn(places_, rows[i].slot) != before) continue;
    fill(row_nodes_[i], row.position - 1);
    return row_nodes_[i];
  }
  std::int32_t node = 0;
  for (std::int32_t p = trunk; p < row.position; ++p) {
    const std::int32_t slot = SlotOnPath(*plan_, places_, row, p);
    std::int32_t child = At(node).first_child;
    while (child != kNone && At(child).slot != slot) child = At(child).sibling;
    node = child == kNone ? AddChild(node, slot) : child;
    fill(node, p);
  }
  return node;
}

std::int32_t DeltaWalk::Keep(std::int32_t number) {
  kept_states_ = std::max(kept_states_, number + 1);
  return DeltaStep::Kept(number);
}

void DeltaWalk::Apply(const Node& node, std::int32_t state) {
  Add(Kind::kApply, state, node.slot);
  if (node.filled_block == kNone) return;
  Add(Kind::kCopy, node.filled_block, state);
  applied_[node.filled_block] = kBlockSize;
}

void DeltaWalk::Visit(std::int32_t node, std::int32_t state, std::int32_t kept) {
  for (;;) {
    std::int32_t last = kNone;  // The last of the children that have children of their own.
    for (std::int32_t child = At(node).first_child; child != kNone; child = At(child).sibling) {
      if (At(child).row != kNone) Add(Kind::kRow, state, At(child).row);
    }
    for (std::int32_t child = At(node).first_child; child != kNone; child = At(child).sibling) {
      if (At(child).first_child == kNone) continue;
      if (last != kNone) {
        Add(Kind::kCopy, Keep(kept), state);
        Apply(At(last), Keep(kept));
        Visit(last, Keep(kept), kept + 1);
      }
      last = child;
    }
    if (last == kNone) return;
    if (state >= 0) {  // A block's stays what it is.
      Add(Kind::kCopy, Keep(kept), state);
      state = Keep(kept++);
    }
    Apply(At(last), state);
    node = last;
  }
}

}  // namespace foretoken
