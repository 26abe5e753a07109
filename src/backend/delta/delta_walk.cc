#include "backend/delta/delta_walk.h"

#include <algorithm>

#include "backend/backend.h"
#include "base/check.h"

namespace foretoken {
namespace {

using Kind = DeltaStep::Kind;

constexpr std::int32_t kStart = -1;  // The slot before position 0.

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

std::int32_t DeltaWalk::SlotBefore(const RowPlace& row) const {
  return row.position == 0 ? kStart : SlotOnPath(*plan_, places_, row, row.position - 1);
}

std::int32_t DeltaWalk::BlockOf(const std::int32_t* table, std::int32_t position) const {
  const std::int32_t block = table[position / kBlockSize];
  return places_ == nullptr ? block : places_[block];
}

void DeltaWalk::Plan(const BatchPlan& plan, const std::int32_t* places, int layer,
                     DeltaStore* store) {
  steps_.clear();
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
    std::int32_t from = block;
    if (i > first) from = i == 0 ? DeltaStep::kNone : BlockOf(table, (i - 1) * kBlockSize);
    Add(Kind::kOpen, block, from);
    for (int lane = applied_[block]; lane < wanted(i); ++lane) {
      Add(Kind::kApply, block * kBlockSize + lane);
    }
    applied_[block] = static_cast<std::int8_t>(wanted(i));
  }
}

void DeltaWalk::PlanSequence(std::size_t begin, std::size_t end) {
  const std::span<const RowPlace> rows = plan_->rows.subspan(begin, end - begin);
  const std::int32_t* table = plan_->block_tables[rows.front().sequence];
  // What this row and all behind it have of the trunk.
  trunks_.resize(rows.size());
  std::int32_t trunk = TrunkBefore(rows.back());
  for (std::size_t i = rows.size(); i-- > 0;) {
    trunks_[i] = trunk = std::min(trunk, TrunkBefore(rows[i]));
  }
  std::int32_t base = DeltaStep::kNone;  // The block whose state is that before position `trunk`.
  std::int32_t last = kStart;            // The slot of the last position in the state in hand.
  if (trunk > 0) {
    Advance(table, trunk);
    base = BlockOf(table, trunk - 1);
    last = base * kBlockSize + (trunk - 1) % kBlockSize;
  } else {
    Add(Kind::kFork, 0, DeltaStep::kNone);
  }
  bool own = trunk == 0;  // Whether the state in hand is a copy.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowPlace& row = rows[i];
    const std::int32_t before = SlotBefore(row);
    std::int32_t from = row.position;  // Positions from here on are to be taken in.
    if (before != last) {
      const bool follows = i > 0 && before == SlotIn(places_, rows[i - 1].slot);
      from = follows ? row.position - 1 : trunk;
      if (!follows || !own) Add(Kind::kFork, 0, base);
      own = true;
    }
    for (std::int32_t p = from; p < row.position; ++p) {
      Add(Kind::kApply, SlotOnPath(*plan_, places_, row, p));
      if ((p + 1) % kBlockSize != 0 || p >= trunks_[i]) continue;
      // The trunk has come to a block's end, and no row goes on from before it.
      trunk = p + 1;
      base = BlockOf(table, p);
      Add(Kind::kSave, base);
      applied_[base] = kBlockSize;
    }
    last = before;
    Add(Kind::kRow, static_cast<std::int32_t>(begin + i));
  }
}

}  // namespace foretoken
