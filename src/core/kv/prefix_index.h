#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "foretoken/adapter.h"
#include "foretoken/types.h"

namespace foretoken {

/// Whose prefixes are shared: keys and values depend on the adapter that they were computed with.
struct KvScope {
  std::uint64_t owner = 0;  ///< Request::prefix_scope.
  AdapterUse adapter = {};

  bool operator==(const KvScope&) const = default;
};

/// The chain hash of a full block, from that of the block before it (one of the scope for the
/// first) and its own kBlockSize tokens. It only narrows the search: what it finds is confirmed
/// token by token.
using BlockHash = std::uint64_t (*)(std::uint64_t parent, std::span<const Token> tokens);

std::uint64_t HashBlock(std::uint64_t parent, std::span<const Token> tokens);

/// Which blocks hold the KV of which tokens after which prefix. A published block is one node of
/// a tree: its parent is the published block of the kBlockSize tokens before. Content is compared
/// as (scope, parent, tokens), which by induction compares whole prefixes; each scope has trees of
/// its own. Allocates in its constructor only.
class PrefixIndex {
 public:
  static constexpr std::int32_t kNone = -1;

  PrefixIndex(std::int32_t blocks, BlockHash hash);

  /// The block of `scope` below `parent` (kNone for the start of a sequence) that holds `tokens`,
  /// or kNone.
  std::int32_t Find(const KvScope& scope, std::int32_t parent, std::span<const Token> tokens) const;

  /// Publishes `block` below `parent`, where no other block of the scope holds the same tokens.
  void Insert(const KvScope& scope, std::int32_t block, std::int32_t parent,
              std::span<const Token> tokens);

  /// Withdraws a published block that has no children.
  void Erase(std::int32_t block);

  bool Contains(std::int32_t block) const { return nodes_[block].published; }
  bool HasChildren(std::int32_t block) const { return nodes_[block].children > 0; }
  std::int32_t ParentOf(std::int32_t block) const { return nodes_[block].parent; }

  /// Recounts buckets, hashes and children; names the first contradiction.
  Status Check() const;

 private:
  struct Node {
    std::uint64_t hash = 0;
    KvScope scope;
    std::int32_t parent = kNone;
    std::int32_t children = 0;
    std::int32_t next = kNone;  // In the bucket.
    bool published = false;
  };

  std::size_t BucketOf(std::uint64_t hash) const { return hash & (buckets_.size() - 1); }
  // The chain hash of a block of `tokens` below `parent`.
  std::uint64_t HashBelow(const KvScope& scope, std::int32_t parent,
                          std::span<const Token> tokens) const;
  std::span<const Token> TokensOf(std::int32_t block) const;
  Status CheckNode(std::int32_t block) const;

  BlockHash hash_;
  std::vector<Node> nodes_;
  std::vector<Token> tokens_;          // kBlockSize for each block.
  std::vector<std::int32_t> buckets_;  // First block of each; a power of two of them.
};

}  // namespace foretoken
