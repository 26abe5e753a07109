#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/batch_plan.h"
#include "base/result.h"
#include "foretoken/stats.h"
#include "foretoken/types.h"
#include "kv/block_pool.h"
#include "kv/prefix_index.h"

namespace foretoken {

/// The KV blocks of one sequence in logical order. Owned by the sequence, filled and emptied by
/// `KvCache` alone.
struct SequenceKv {
  std::vector<std::int32_t> blocks;
  /// Positions below it belong to committed tokens, and their KV is there; what lies behind is a
  /// proposal's and is rolled back by being forgotten.
  std::int32_t committed = 0;
  /// Prefixes are shared with sequences of the same scope only; set before the first MatchPrefix.
  KvScope scope;
  std::int32_t published_blocks = 0;  ///< Leading blocks that are published in the prefix cache.

  std::int32_t SlotOf(std::int32_t position) const {
    return blocks[position / kBlockSize] * kBlockSize + position % kBlockSize;
  }
};

/// The block pool with reference counts and, above it, the prefix cache (hash chains over full
/// blocks; a match is confirmed token by token, so a hash collision can never share wrong KV).
/// Whoever refers to a published block refers to those before it, and blocks are given back last
/// first, so reclaiming by last use never takes a block before those that continue it.
/// One per model; not thread-safe. Allocates in its constructor and where a sequence's block list
/// outgrows its capacity, nowhere else.
class KvCache {
 public:
  /// Tests give a `hash` that collides.
  KvCache(std::int64_t blocks, bool prefix_cache, BlockHash hash = HashBlock);
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  /// Takes references to the longest prefix of `tokens` that is cached in the sequence's scope, at
  /// most tokens.size() - 1 so that at least one token is left to compute, which are committed
  /// then. `sequence` must be empty. Returns the number of tokens found.
  std::int32_t MatchPrefix(std::span<const Token> tokens, SequenceKv* sequence);

  /// Makes room for positions below `length`, reclaiming cached blocks as needed. False, changing
  /// nothing, when the pool cannot give that many.
  [[nodiscard]] bool Reserve(std::int32_t length, SequenceKv* sequence);

  /// Publishes full blocks whose tokens are all committed. `tokens` is the whole sequence so far.
  /// Where another block of the same content is published already, the sequence changes over to it
  /// and gives its own back, so slots of committed positions may change here.
  void Publish(std::span<const Token> tokens, SequenceKv* sequence);

  /// Gives back blocks that lie wholly beyond `length` and truncates `committed` to it. Published
  /// blocks are never written again: where `length` cuts into one, it is given back too and the
  /// `committed` falls to its start, from where the caller computes again.
  void Truncate(std::int32_t length, SequenceKv* sequence);

  /// Gives back everything; published blocks stay cached.
  void Release(SequenceKv* sequence) { Truncate(0, sequence); }

  /// Blocks that Reserve could give now.
  std::int64_t Available() const { return pool_.free_count() + pool_.idle_count(); }
  KvUsage Usage() const;

  /// Recounts every state from scratch and compares; names the first contradiction.
  Status CheckIntegrity() const;

 private:
  void DropLast(SequenceKv* sequence);
  void PublishNext(std::span<const Token> tokens, SequenceKv* sequence);

  bool prefix_cache_;
  BlockPool pool_;
  PrefixIndex index_;
};

}  // namespace foretoken
