#include "core/kv/kv_cache.h"

#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/numbers/integers.h"

namespace foretoken {
namespace {

constexpr std::int64_t kMaxBlocks = std::numeric_limits<std::int32_t>::max() / kBlockSize;
constexpr std::size_t kFirstCapacity = 128;  // 4096 tokens.

std::int32_t CheckedCount(std::int64_t blocks) {
  FT_CHECK(blocks >= 0 && blocks <= kMaxBlocks, "{} blocks have no 32-bit slot numbers", blocks);
  return static_cast<std::int32_t>(blocks);
}

void GrowCapacity(std::size_t blocks, SequenceKv* sequence) {
  if (blocks <= sequence->blocks.capacity()) return;
  sequence->blocks.reserve(std::max({blocks, 2 * sequence->blocks.capacity(), kFirstCapacity}));
}

std::span<const Token> TokensOfBlock(std::span<const Token> tokens, std::size_t index) {
  return tokens.subspan(index * kBlockSize, kBlockSize);
}

}  // namespace

KvRoom RoomFor(std::int64_t blocks, int window, int anchors, const KvDemand& demand,
               bool prefix_cache) {
  KvRoom room{.blocks = blocks, .window = window, .anchors = anchors};
  // Rows of a pass begin and end within blocks, and so do those that become committed.
  const std::int64_t of_each =
      room.anchor_blocks() + room.blocks_seen() + BlocksFor(demand.nodes) + 2;
  const std::int64_t at_once = demand.sequences * of_each + BlocksFor(demand.rows);
  room.recent_parts = prefix_cache ? 2 * at_once : at_once;
  return window > 0 && room.recent_parts < blocks ? room : KvRoom{.blocks = blocks};
}

KvCache::KvCache(const KvRoom& room, bool prefix_cache, BlockHash hash)
    : room_(room),
      prefix_cache_(prefix_cache),
      pool_(CheckedCount(room.blocks)),
      index_(prefix_cache ? pool_.total() : 0, hash),
      recent_(room.window > 0 ? pool_.total() : 0,
              room.window > 0 ? CheckedCount(room.recent_parts) : 0) {}

bool KvCache::HasRoomFor(std::int64_t blocks) const {
  const std::int64_t seen =
      std::min<std::int64_t>(blocks, room_.anchor_blocks() + room_.blocks_seen() + 1);
  return blocks <= Available() && (room_.window == 0 || seen <= recent_.available());
}

std::int32_t KvCache::MatchPrefix(std::span<const Token> tokens, SequenceKv* sequence) {
  FT_CHECK(sequence->blocks.empty(), "MatchPrefix is for empty sequences");
  if (!prefix_cache_ || tokens.empty()) return 0;
  FindPrefix(tokens, sequence);
  const auto found = static_cast<std::int32_t>(sequence->blocks.size());
  for (const std::int32_t block : sequence->blocks) pool_.Retain(block);
  sequence->published_blocks = found;
  sequence->committed = found * kBlockSize;
  sequence->first_recent = FirstSeen(sequence->committed);
  for (std::int32_t index = 0; index < found; ++index) {
    if (HoldsRecent(*sequence, index)) recent_.Retain(sequence->blocks[index]);
  }
  return sequence->committed;
}

void KvCache::FindPrefix(std::span<const Token> tokens, SequenceKv* sequence) const {
  std::vector<std::int32_t>& blocks = sequence->blocks;
  const std::size_t limit = (tokens.size() - 1) / kBlockSize;
  const std::size_t seen = room_.blocks_seen();
  GrowCapacity(limit + 1, sequence);
  std::int32_t last = PrefixIndex::kNone;
  std::size_t usable = 0;
  std::size_t recent = 0;  // How many of the last blocks have their recent parts.
  while (blocks.size() < limit) {
    last = index_.Find(sequence->scope, last, TokensOfBlock(tokens, blocks.size()));
    if (last == PrefixIndex::kNone) break;
    const bool there = room_.window == 0 || recent_.Has(last);
    if (!there && std::int32_t(blocks.size()) < room_.anchor_blocks()) break;
    blocks.push_back(last);
    recent = there ? recent + 1 : 0;
    if (recent >= std::min(blocks.size(), seen)) usable = blocks.size();
  }
  blocks.resize(usable);
}

bool KvCache::Reserve(std::int32_t length, SequenceKv* sequence) {
  FT_CHECK(length >= 0, "length {}", length);
  DropPassed(sequence);
  const std::size_t wanted = BlocksFor(length);
  const std::size_t present = sequence->blocks.size();
  if (wanted <= present) return true;
  const std::int64_t more = wanted - present;
  if (more > Available() || (room_.window > 0 && more > recent_.available())) return false;
  GrowCapacity(wanted, sequence);
  while (sequence->blocks.size() < wanted) TakeBlock(sequence);
  return true;
}

void KvCache::TakeBlock(SequenceKv* sequence) {
  if (pool_.free_count() == 0) Unpublish(pool_.FreeOldestIdle());
  const std::int32_t block = pool_.Take();
  sequence->blocks.push_back(block);
  if (room_.window > 0) recent_.Take(block);
  if (store_ != nullptr) ClearBlock(block, store_);
}

void KvCache::DropPassed(SequenceKv* sequence) {
  if (room_.window == 0) return;
  const std::int32_t first = FirstSeen(sequence->committed);
  for (; sequence->first_recent < first; ++sequence->first_recent) {
    if (sequence->first_recent < room_.anchor_blocks()) continue;
    const std::int32_t block = sequence->blocks[sequence->first_recent];
    recent_.Drop(block, /*keep=*/IsPublished(block));
  }
}

void KvCache::Publish(std::span<const Token> tokens, SequenceKv* sequence) {
  if (prefix_cache_) PublishFull(tokens, sequence);
  DropPassed(sequence);
}

void KvCache::PublishFull(std::span<const Token> tokens, SequenceKv* sequence) {
  FT_CHECK(sequence->committed <= std::int64_t(tokens.size()), "{} committed positions, {} tokens",
           sequence->committed, tokens.size());
  const std::int32_t full = sequence->committed / kBlockSize;
  FT_CHECK(std::size_t(full) <= sequence->blocks.size(), "committed beyond what was reserved");
  while (sequence->published_blocks < full) PublishNext(tokens, sequence);
}

void KvCache::PublishNext(std::span<const Token> tokens, SequenceKv* sequence) {
  const std::int32_t index = sequence->published_blocks;
  const std::int32_t parent = index == 0 ? PrefixIndex::kNone : sequence->blocks[index - 1];
  const std::span<const Token> content = TokensOfBlock(tokens, index);
  const std::int32_t published = index_.Find(sequence->scope, parent, content);
  if (published == PrefixIndex::kNone) {
    index_.Insert(sequence->scope, sequence->blocks[index], parent, content);
  } else {
    ChangeOver(index, published, sequence);
  }
  ++sequence->published_blocks;
}

void KvCache::ChangeOver(std::int32_t index, std::int32_t published, SequenceKv* sequence) {
  std::int32_t& block = sequence->blocks[index];
  pool_.Retain(published);
  if (HoldsRecent(*sequence, index)) {
    if (recent_.Has(published)) {
      recent_.Retain(published);
      recent_.Drop(block, /*keep=*/false);
    } else {
      recent_.Move(block, published);
    }
  }
  pool_.Drop(block, /*keep=*/false);
  block = published;
}

void KvCache::DropLast(SequenceKv* sequence) {
  const std::int32_t block = sequence->blocks.back();
  const bool keep = IsPublished(block);
  const auto index = static_cast<std::int32_t>(sequence->blocks.size()) - 1;
  if (HoldsRecent(*sequence, index)) recent_.Drop(block, keep);
  sequence->blocks.pop_back();
  pool_.Drop(block, keep);
}

void KvCache::Unpublish(std::int32_t block) {
  index_.Erase(block);
  if (room_.window > 0) recent_.Forget(block);
}

void KvCache::Withdraw(SequenceKv* sequence) {
  while (!sequence->blocks.empty()) {
    const std::int32_t block = sequence->blocks.back();
    DropLast(sequence);
    if (!IsPublished(block) || pool_.references(block) > 0 || index_.HasChildren(block)) continue;
    pool_.FreeIdle(block);
    Unpublish(block);
  }
  Release(sequence);
}

void KvCache::Truncate(std::int32_t length, SequenceKv* sequence) {
  FT_CHECK(length >= 0, "length {}", length);
  if (length < sequence->published_blocks * kBlockSize) length -= length % kBlockSize;
  if (FirstSeen(std::min(length, sequence->committed)) < sequence->first_recent) length = 0;
  sequence->published_blocks = std::min(sequence->published_blocks, length / kBlockSize);
  const std::size_t kept = BlocksFor(length);
  while (sequence->blocks.size() > kept) DropLast(sequence);
  sequence->committed = std::min(sequence->committed, length);
  sequence->first_recent = std::min(sequence->first_recent, FirstSeen(sequence->committed));
}

std::int32_t KvCache::Forget(const KvScope& scope, std::span<const Token> tokens) {
  std::vector<std::int32_t> blocks;
  std::int32_t last = PrefixIndex::kNone;
  while (prefix_cache_ && (blocks.size() + 1) * kBlockSize <= tokens.size()) {
    last = index_.Find(scope, last, TokensOfBlock(tokens, blocks.size()));
    if (last == PrefixIndex::kNone) break;
    blocks.push_back(last);
  }
  std::int32_t forgotten = 0;
  for (; !blocks.empty(); blocks.pop_back()) {
    const std::int32_t block = blocks.back();
    if (pool_.references(block) > 0 || index_.HasChildren(block)) break;
    index_.Erase(block);
    if (room_.window > 0) recent_.Forget(block);
    pool_.FreeIdle(block);
    forgotten += kBlockSize;
  }
  return forgotten;
}

Status KvCache::CheckIntegrity() const {
  FT_RETURN_IF_ERROR(pool_.Check());
  if (prefix_cache_) FT_RETURN_IF_ERROR(CheckPublished());
  return room_.window == 0 ? Status() : CheckRecent();
}

Status KvCache::CheckPublished() const {
  FT_RETURN_IF_ERROR(index_.Check());
  std::int64_t idle = 0;
  for (std::int32_t block = 0; block < pool_.total(); ++block) {
    if (!index_.Contains(block)) continue;
    const std::int32_t references = pool_.references(block);
    const std::int32_t parent = index_.ParentOf(block);
    if (parent != PrefixIndex::kNone && pool_.references(parent) < references) {
      return InternalError("KV cache: block {} has {} references and its parent {} only {}", block,
                           references, parent, pool_.references(parent));
    }
    if (references == 0) ++idle;
  }
  if (idle != pool_.idle_count()) {
    return InternalError("KV cache: {} published blocks are unreferenced, {} blocks are idle", idle,
                         pool_.idle_count());
  }
  return {};
}

Status KvCache::CheckRecent() const {
  FT_RETURN_IF_ERROR(recent_.Check());
  for (std::int32_t block = 0; block < pool_.total(); ++block) {
    if (!recent_.Has(block)) continue;
    const std::int32_t references = recent_.references(block);
    if (references > pool_.references(block)) {
      return InternalError("KV cache: block {} has {} references and its recent part {}", block,
                           pool_.references(block), references);
    }
    if (references == 0 && !IsPublished(block)) {
      return InternalError(
          "KV cache: nobody refers to the recent part of block {}, which is not published", block);
    }
  }
  return {};
}

KvUsage KvCache::UsageOf(const BlockPool& pool) {
  return {.total = pool.total(),
          .free = pool.free_count(),
          .cached = pool.idle_count(),
          .used = pool.total() - pool.free_count() - pool.idle_count()};
}

void ClearBlock(std::int32_t block, KvStore* kv) {
  for (std::size_t i = 0; i < kv->layers.size(); ++i) {
    const std::int32_t* const places = kv->PlacesIn(Int(i));
    const std::int32_t place = places == nullptr ? block : places[block];
    if (place < 0) continue;  // Its recent part was given back.
    const auto clear = [&](std::size_t begin, std::size_t end, Buffer* buffer) {
      const std::size_t blocks = kv->shape.BlocksOf(kv->shape.layers[i]);
      const std::size_t bytes = (end - begin) / blocks;
      std::memset(buffer->as<std::byte>() + begin + place * bytes, 0, bytes);
    };
    const bool last = i + 1 == kv->layers.size();
    const KvStore::Begin end =
        last ? KvStore::Begin{kv->keys.bytes(), kv->values.bytes()} : kv->layers[i + 1];
    clear(kv->layers[i].keys, end.keys, &kv->keys);
    clear(kv->layers[i].values, end.values, &kv->values);
  }
}

KvStore AllocateKv(KvShape shape, const KvCache& cache, Backend* backend) {
  shape.blocks = cache.room().blocks;
  shape.recent_blocks = cache.room().recent_parts;
  KvStore store = backend->AllocateKv(shape);
  store.recent_places = cache.recent_places();
  return store;
}

}  // namespace foretoken
