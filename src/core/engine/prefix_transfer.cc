#include "core/engine/prefix_transfer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/engine/scheduler.h"

namespace foretoken {

PrefixTransfer::PrefixTransfer(Engine& engine, KvScope scope, std::vector<Token> tokens)
    : scheduler_(KvOf(engine).scheduler),
      store_(KvOf(engine).store),
      bytes_(store_),
      tokens_(std::move(tokens)) {
  held_.scope = scope;
  scheduler_->AddGuest(&held_);
}

PrefixTransfer::~PrefixTransfer() { scheduler_->RemoveGuest(&held_); }

std::string PrefixTransfer::Layout() const {
  const KvRoom& room = scheduler_->kv().room();
  const std::vector<int>& taps = store_->taps.shape.points;
  return fmt::format("blocks of {} with {} bytes, {} of a window of {} behind {}, states [{}]",
                     kBlockSize, bytes_.of_block(), bytes_.of_recent(), room.window, room.anchors,
                     fmt::join(taps, " "));
}

bool PrefixTransfer::HasRecent(std::int32_t index, std::int32_t blocks) const {
  const KvRoom& room = scheduler_->kv().room();
  if (room.window == 0) return false;
  return index < room.anchor_blocks() || index >= blocks - room.blocks_seen();
}

std::size_t PrefixTransfer::BytesOf(std::int32_t index, std::int32_t blocks) const {
  return bytes_.of_block() + (HasRecent(index, blocks) ? bytes_.of_recent() : 0);
}

std::int32_t PrefixTransfer::Match() {
  return scheduler_->kv().MatchPrefix(tokens_, &held_) / kBlockSize;
}

bool PrefixTransfer::CopyOut(std::int32_t index, std::int32_t blocks,
                             std::span<std::byte> to) const {
  if (!Holds(blocks)) return false;
  bytes_.CopyOut(held_.blocks[index], HasRecent(index, blocks), to);
  return true;
}

bool PrefixTransfer::CopyIn(std::int32_t index, std::int32_t blocks,
                            std::span<const std::byte> from) {
  if (!Holds(index)) return false;
  const std::int32_t end = (index + 1) * kBlockSize;
  if (!scheduler_->kv().Reserve(end, &held_)) return false;
  bytes_.CopyIn(from, HasRecent(index, blocks), held_.blocks.back());
  held_.committed = end;
  return true;
}

bool PrefixTransfer::AreSound(std::int32_t index, std::int32_t blocks,
                              std::span<const std::byte> bytes) const {
  return bytes_.AreSound(bytes, HasRecent(index, blocks));
}

bool PrefixTransfer::Publish() {
  if (held_.blocks.empty()) return false;
  KvCache& kv = scheduler_->kv();
  // Gives back recent parts that were passed, before anybody could find them: they were not copied.
  if (!kv.Reserve(held_.committed, &held_)) return false;
  kv.Publish(tokens_, &held_);
  return true;
}

std::int32_t ForgetPrefix(Engine& engine, const KvScope& scope, std::span<const Token> tokens) {
  return KvOf(engine).scheduler->kv().Forget(scope, tokens);
}

}  // namespace foretoken
