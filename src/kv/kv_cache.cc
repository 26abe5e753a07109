#include "kv/kv_cache.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

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

KvCache::KvCache(std::int64_t blocks, bool prefix_cache, BlockHash hash)
    : prefix_cache_(prefix_cache),
      pool_(CheckedCount(blocks)),
      index_(prefix_cache ? CheckedCount(blocks) : 0, hash) {}

std::int32_t KvCache::MatchPrefix(std::span<const Token> tokens, SequenceKv* sequence) {
  FT_CHECK(sequence->blocks.empty(), "MatchPrefix is for empty sequences");
  if (!prefix_cache_ || tokens.empty()) return 0;
  const std::size_t limit = (tokens.size() - 1) / kBlockSize;
  GrowCapacity(limit + 1, sequence);
  std::int32_t last = PrefixIndex::kNone;
  while (sequence->blocks.size() < limit) {
    const std::int32_t block =
        index_.Find(sequence->scope, last, TokensOfBlock(tokens, sequence->blocks.size()));
    if (block == PrefixIndex::kNone) break;
    pool_.Retain(block);
    sequence->blocks.push_back(block);
    last = block;
  }
  sequence->published_blocks = static_cast<std::int32_t>(sequence->blocks.size());
  sequence->committed = sequence->published_blocks * kBlockSize;
  return sequence->committed;
}

bool KvCache::Reserve(std::int32_t length, SequenceKv* sequence) {
  FT_CHECK(length >= 0, "length {}", length);
  const std::size_t wanted = static_cast<std::size_t>(BlocksFor(length));
  const std::size_t present = sequence->blocks.size();
  if (wanted <= present) return true;
  if (std::int64_t(wanted - present) > Available()) return false;
  GrowCapacity(wanted, sequence);
  while (sequence->blocks.size() < wanted) {
    if (pool_.free_count() == 0) index_.Erase(pool_.FreeOldestIdle());
    sequence->blocks.push_back(pool_.Take());
  }
  return true;
}

void KvCache::Publish(std::span<const Token> tokens, SequenceKv* sequence) {
  if (!prefix_cache_) return;
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
  std::int32_t& block = sequence->blocks[index];
  const std::int32_t published = index_.Find(sequence->scope, parent, content);
  if (published == PrefixIndex::kNone) {
    index_.Insert(sequence->scope, block, parent, content);
  } else {
    pool_.Retain(published);
    pool_.Drop(block, /*keep=*/false);
    block = published;
  }
  ++sequence->published_blocks;
}

void KvCache::DropLast(SequenceKv* sequence) {
  const std::int32_t block = sequence->blocks.back();
  sequence->blocks.pop_back();
  pool_.Drop(block, /*keep=*/prefix_cache_ && index_.Contains(block));
}

void KvCache::Truncate(std::int32_t length, SequenceKv* sequence) {
  FT_CHECK(length >= 0, "length {}", length);
  if (length < sequence->published_blocks * kBlockSize) {
    length -= length % kBlockSize;
    sequence->published_blocks = length / kBlockSize;
  }
  const std::size_t kept = static_cast<std::size_t>(BlocksFor(length));
  while (sequence->blocks.size() > kept) DropLast(sequence);
  sequence->committed = std::min(sequence->committed, length);
}

Status KvCache::CheckIntegrity() const {
  FT_RETURN_IF_ERROR(pool_.Check());
  if (!prefix_cache_) return {};
  FT_RETURN_IF_ERROR(index_.Check());
  std::int64_t idle = 0;
  for (std::int32_t block = 0; block < pool_.total(); ++block) {
    if (!index_.Contains(block)) continue;
    const std::int32_t references = pool_.references(block);
    const std::int32_t parent = index_.ParentOf(block);
    if (parent != PrefixIndex::kNone && pool_.references(parent) < references) {
      return Error{ErrorCode::kInternal,
                   fmt::format("KV cache: block {} has {} references and its parent {} only {}",
                               block, references, parent, pool_.references(parent))};
    }
    if (references == 0) ++idle;
  }
  if (idle != pool_.idle_count()) {
    return Error{ErrorCode::kInternal,
                 fmt::format("KV cache: {} published blocks are unreferenced, {} blocks are idle",
                             idle, pool_.idle_count())};
  }
  return {};
}

KvUsage KvCache::Usage() const {
  return {.total = pool_.total(),
          .free = pool_.free_count(),
          .cached = pool_.idle_count(),
          .used = pool_.total() - pool_.free_count() - pool_.idle_count()};
}

}  // namespace foretoken
