#include "core/kv/prefix_index.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "core/backend/batch_plan.h"

namespace foretoken {

std::uint64_t HashBlock(std::uint64_t parent, std::span<const Token> tokens) {
  return XXH64(tokens.data(), tokens.size_bytes(), parent);
}

PrefixIndex::PrefixIndex(std::int32_t blocks, BlockHash hash)
    : hash_(hash),
      nodes_(blocks),
      tokens_(std::size_t(blocks) * kBlockSize),
      buckets_(std::bit_ceil(std::size_t(blocks) + 1), kNone) {}

std::span<const Token> PrefixIndex::TokensOf(std::int32_t block) const {
  return {tokens_.data() + std::size_t(block) * kBlockSize, kBlockSize};
}

std::uint64_t PrefixIndex::HashBelow(const KvScope& scope, std::int32_t parent,
                                     std::span<const Token> tokens) const {
  if (parent != kNone) return hash_(nodes_[parent].hash, tokens);
  const auto adapter = static_cast<std::uint32_t>(scope.adapter.index + 1);  // 0: none.
  const auto scale = std::bit_cast<std::uint32_t>(scope.adapter.scale);
  const std::uint64_t use = adapter == 0 ? 0 : std::uint64_t{adapter} << 32 | scale;
  return hash_(scope.owner ^ use, tokens);
}

std::int32_t PrefixIndex::Find(const KvScope& scope, std::int32_t parent,
                               std::span<const Token> tokens) const {
  const std::uint64_t hash = HashBelow(scope, parent, tokens);
  for (std::int32_t block = buckets_[BucketOf(hash)]; block != kNone; block = nodes_[block].next) {
    const Node& node = nodes_[block];
    if (node.hash == hash && node.scope == scope && node.parent == parent &&
        std::ranges::equal(TokensOf(block), tokens)) {
      return block;
    }
  }
  return kNone;
}

void PrefixIndex::Insert(const KvScope& scope, std::int32_t block, std::int32_t parent,
                         std::span<const Token> tokens) {
  FT_CHECK(!Contains(block), "block {} is published already", block);
  FT_CHECK(parent == kNone || Contains(parent), "parent {} is not published", parent);
  const std::uint64_t hash = HashBelow(scope, parent, tokens);
  std::int32_t& bucket = buckets_[BucketOf(hash)];
  nodes_[block] = {
      .hash = hash, .scope = scope, .parent = parent, .next = bucket, .published = true};
  bucket = block;
  if (parent != kNone) ++nodes_[parent].children;
  std::ranges::copy(tokens, tokens_.begin() + std::ptrdiff_t(block) * kBlockSize);
}

void PrefixIndex::Erase(std::int32_t block) {
  Node& node = nodes_[block];
  FT_CHECK(node.published && node.children == 0, "block {} has {} children", block, node.children);
  std::int32_t* link = &buckets_[BucketOf(node.hash)];
  while (*link != block) link = &nodes_[*link].next;
  *link = node.next;
  if (node.parent != kNone) --nodes_[node.parent].children;
  node = {};
}

Status PrefixIndex::CheckNode(std::int32_t block) const {
  const auto wrong = [block](const char* what) {
    return InternalError("prefix cache: block {} {}", block, what);
  };
  const Node& node = nodes_[block];
  if (!node.published) return wrong("is in a bucket and not published");
  if (node.parent != kNone && !Contains(node.parent)) return wrong("has an unpublished parent");
  if (node.parent != kNone && nodes_[node.parent].scope != node.scope) {
    return wrong("has a parent of another scope");
  }
  if (node.hash != HashBelow(node.scope, node.parent, TokensOf(block))) {
    return wrong("has a wrong hash");
  }
  if (Find(node.scope, node.parent, TokensOf(block)) != block)
    return wrong("is shadowed by a duplicate");
  return {};
}

Status PrefixIndex::Check() const {
  std::vector<std::int32_t> children(nodes_.size(), 0);
  std::vector<bool> found(nodes_.size(), false);
  for (const std::int32_t first : buckets_) {
    for (std::int32_t block = first; block != kNone; block = nodes_[block].next) {
      if (found[block]) {
        return InternalError("prefix cache: block {} is in two buckets", block);
      }
      found[block] = true;
      FT_RETURN_IF_ERROR(CheckNode(block));
      if (nodes_[block].parent != kNone) ++children[nodes_[block].parent];
    }
  }
  for (std::size_t block = 0; block < nodes_.size(); ++block) {
    if (nodes_[block].published != found[block] || nodes_[block].children != children[block]) {
      return InternalError(
          "prefix cache: block {} is published: {}, found: {}, with {} children, {} counted", block,
          nodes_[block].published, bool(found[block]), children[block], nodes_[block].children);
    }
  }
  return {};
}

}  // namespace foretoken
