#include "backend/delta/delta_walk.h"

#include <algorithm>

namespace foretoken {
namespace {

using Kind = DeltaStep::Kind;

constexpr std::int32_t kStart = -1;  // The slot before position 0.

std::int32_t SlotBefore(const BatchPlan& plan, const RowPlace& row) {
  return row.position == 0 ? kStart : SlotOnPath(plan, row, row.position - 1);
}

// Positions before a row that are on the trunk.
std::int32_t TrunkBefore(const RowPlace& row) { return std::min(row.trunk_length, row.position); }

}  // namespace

std::int32_t SlotOnPath(const BatchPlan& plan, const RowPlace& row, std::int32_t p) {
  if (p >= row.trunk_length) return plan.tail_slots[row.tail_begin + p - row.trunk_length];
  return plan.block_tables[row.sequence][p / kBlockSize] * kBlockSize + p % kBlockSize;
}

void DeltaWalk::Plan(const BatchPlan& plan, std::int8_t* applied) {
  steps_.clear();
  for (std::size_t begin = 0; begin < plan.rows.size();) {
    std::size_t end = begin + 1;
    while (end < plan.rows.size() && plan.rows[end].sequence == plan.rows[begin].sequence) ++end;
    PlanSequence(plan, begin, end, applied);
    begin = end;
  }
}

void DeltaWalk::Advance(const std::int32_t* table, std::int32_t length, std::int8_t* applied) {
  const std::int32_t last = (length - 1) / kBlockSize;
  const auto wanted = [&](std::int32_t i) {
    return i < last ? kBlockSize : length - last * kBlockSize;
  };
  std::int32_t first = last;
  while (first > 0 && (applied[table[first]] == 0 || applied[table[first]] > wanted(first))) {
    --first;
  }
  if (applied[table[first]] > wanted(first)) applied[table[first]] = 0;
  for (std::int32_t i = first; i <= last; ++i) {
    const std::int32_t block = table[i];
    if (i > first) applied[block] = 0;
    const bool made = applied[block] > 0;
    Add(Kind::kOpen, block, made ? block : i == 0 ? DeltaStep::kNone : table[i - 1]);
    for (int lane = applied[block]; lane < wanted(i); ++lane) {
      Add(Kind::kApply, block * kBlockSize + lane);
    }
    applied[block] = static_cast<std::int8_t>(wanted(i));
  }
}

void DeltaWalk::PlanSequence(const BatchPlan& plan, std::size_t begin, std::size_t end,
                             std::int8_t* applied) {
  const std::span<const RowPlace> rows = plan.rows.subspan(begin, end - begin);
  const std::int32_t* table = plan.block_tables[rows.front().sequence];
  // What this row and all behind it have of the trunk.
  trunks_.resize(rows.size());
  std::int32_t trunk = TrunkBefore(rows.back());
  for (std::size_t i = rows.size(); i-- > 0;) {
    trunks_[i] = trunk = std::min(trunk, TrunkBefore(rows[i]));
  }
  std::int32_t base = DeltaStep::kNone;  // The block whose state is that before position `trunk`.
  std::int32_t last = kStart;            // The slot of the last position in the state in hand.
  if (trunk > 0) {
    Advance(table, trunk, applied);
    base = table[(trunk - 1) / kBlockSize];
    last = base * kBlockSize + (trunk - 1) % kBlockSize;
  } else {
    Add(Kind::kFork, 0, DeltaStep::kNone);
  }
  bool own = trunk == 0;  // Whether the state in hand is a copy.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowPlace& row = rows[i];
    const std::int32_t before = SlotBefore(plan, row);
    std::int32_t from = row.position;  // Positions from here on are to be taken in.
    if (before != last) {
      const bool follows = i > 0 && before == rows[i - 1].slot;
      from = follows ? row.position - 1 : trunk;
      if (!follows || !own) Add(Kind::kFork, 0, base);
      own = true;
    }
    for (std::int32_t p = from; p < row.position; ++p) {
      Add(Kind::kApply, SlotOnPath(plan, row, p));
      if ((p + 1) % kBlockSize != 0 || p >= trunks_[i]) continue;
      // The trunk has come to a block's end, and no row goes on from before it.
      trunk = p + 1;
      base = table[p / kBlockSize];
      Add(Kind::kSave, base);
      applied[base] = kBlockSize;
    }
    last = before;
    Add(Kind::kRow, static_cast<std::int32_t>(begin + i));
  }
}

}  // namespace foretoken
