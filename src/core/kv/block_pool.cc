#include "core/kv/block_pool.h"

#include <fmt/core.h>

#include "base/check.h"

namespace foretoken {
namespace {

Error Contradiction(std::string message) {
  return Error{ErrorCode::kInternal, "KV block pool: " + std::move(message)};
}

}  // namespace

BlockPool::BlockPool(std::int32_t blocks) : states_(blocks) {
  free_.reserve(blocks);
  for (std::int32_t block = blocks - 1; block >= 0; --block) free_.push_back(block);
}

std::int32_t BlockPool::Take() {
  FT_CHECK(!free_.empty());
  const std::int32_t block = free_.back();
  free_.pop_back();
  states_[block].references = 1;
  states_[block].place = Place::kReferenced;
  return block;
}

void BlockPool::Retain(std::int32_t block) {
  State& state = states_[block];
  FT_CHECK(state.place != Place::kFree, "block {} is free", block);
  if (state.place == Place::kIdle) {
    Unlink(block);
    state.place = Place::kReferenced;
  }
  ++state.references;
}

void BlockPool::Drop(std::int32_t block, bool keep) {
  State& state = states_[block];
  FT_CHECK(state.references > 0, "block {} has no reference to give back", block);
  if (--state.references > 0) return;
  if (keep) {
    state.place = Place::kIdle;
    LinkNewest(block);
  } else {
    state.place = Place::kFree;
    free_.push_back(block);
  }
}

std::int32_t BlockPool::FreeOldestIdle() {
  const std::int32_t block = oldest_;
  FT_CHECK(block != kNone);
  FreeIdle(block);
  return block;
}

void BlockPool::FreeIdle(std::int32_t block) {
  FT_CHECK(states_[block].place == Place::kIdle, "block {} is not idle", block);
  Unlink(block);
  states_[block].place = Place::kFree;
  free_.push_back(block);
}

void BlockPool::LinkNewest(std::int32_t block) {
  states_[block].older = newest_;
  states_[block].newer = kNone;
  (newest_ == kNone ? oldest_ : states_[newest_].newer) = block;
  newest_ = block;
  ++idle_count_;
}

void BlockPool::Unlink(std::int32_t block) {
  State& state = states_[block];
  (state.older == kNone ? oldest_ : states_[state.older].newer) = state.newer;
  (state.newer == kNone ? newest_ : states_[state.newer].older) = state.older;
  state.older = state.newer = kNone;
  --idle_count_;
}

Status BlockPool::Check() const {
  std::vector<bool> found(states_.size(), false);
  for (const std::int32_t block : free_) {
    if (block < 0 || block >= total()) return Contradiction(fmt::format("free block {}", block));
    if (found[block]) return Contradiction(fmt::format("block {} is twice free", block));
    if (states_[block].place != Place::kFree) {
      return Contradiction(fmt::format("block {} on the free list is not free", block));
    }
    found[block] = true;
  }
  std::int32_t previous = kNone;
  std::int64_t idle = 0;
  for (std::int32_t block = oldest_; block != kNone; block = states_[block].newer) {
    if (found[block]) return Contradiction(fmt::format("block {} is idle and elsewhere", block));
    if (states_[block].place != Place::kIdle || states_[block].older != previous) {
      return Contradiction(fmt::format("block {} is wrongly linked among the idle", block));
    }
    found[block] = true;
    previous = block;
    ++idle;
  }
  if (previous != newest_ || idle != idle_count_) {
    return Contradiction(fmt::format("{} idle blocks, {} counted", idle, idle_count_));
  }
  for (std::int32_t block = 0; block < total(); ++block) {
    const State& state = states_[block];
    if (found[block] != (state.place != Place::kReferenced)) {
      return Contradiction(fmt::format("block {} is on no list that its state names", block));
    }
    if (found[block] ? state.references != 0 : state.references < 1) {
      return Contradiction(fmt::format("block {} has {} references", block, state.references));
    }
  }
  return {};
}

}  // namespace foretoken
