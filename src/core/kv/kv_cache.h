#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "core/backend/backend.h"
#include "core/backend/batch_plan.h"
#include "core/kv/block_pool.h"
#include "core/kv/prefix_index.h"
#include "core/kv/recent_parts.h"
#include "foretoken/stats.h"
#include "foretoken/types.h"

namespace foretoken {

/// How much KV there is room for, in blocks.
struct KvRoom {
  std::int64_t blocks = 0;
  /// Positions that a row sees, its own included, in those layers that see the last ones only. Such
  /// layers keep their KV in the blocks' recent parts. 0: there are no such layers.
  int window = 0;
  std::int64_t recent_parts = 0;  ///< At most as many as blocks.
  int anchors = 0;                ///< First positions of a text that rows see there as well.

  /// Blocks before a row's own that it may see in those layers.
  std::int32_t blocks_seen() const { return std::int32_t(BlocksFor(std::max(window, 1) - 1)); }
  /// First blocks that hold anchors.
  std::int32_t anchor_blocks() const { return std::int32_t(BlocksFor(anchors)); }
};

/// What sequences refer to at once, at most.
struct KvDemand {
  std::int64_t sequences = 0;
  std::int64_t rows = 0;   ///< Rows of committed tokens in a pass, beyond one of each sequence.
  std::int64_t nodes = 0;  ///< Nodes of each sequence's tree.
};

/// Room for `blocks`; and for the recent parts that sequences refer to where layers see a window
/// and anchors, for as many again where prefixes are cached. Where these would be no fewer than
/// blocks, nothing is kept apart.
KvRoom RoomFor(std::int64_t blocks, int window, int anchors, const KvDemand& demand,
               bool prefix_cache);

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
  /// From this block on recent parts are held, beside those of the blocks with anchors.
  std::int32_t first_recent = 0;

  std::int32_t SlotOf(std::int32_t position) const {
    return blocks[position / kBlockSize] * kBlockSize + position % kBlockSize;
  }
};

/// The block pool with reference counts and, above it, the prefix cache (hash chains over full
/// blocks; a match is confirmed token by token, so a hash collision can never share wrong KV).
/// Whoever refers to a published block refers to those before it, and blocks are given back last
/// first, so reclaiming by last use never takes a block before those that continue it.
///
/// Where layers see a window, a sequence refers to the recent parts of its last blocks only: those
/// that a row at or behind the start of the block that `committed` lies in can see; and, for as
/// long as it lives, to those of its first blocks, where layers see anchors. What it has
/// passed may stay in the prefix cache, without a reference, and is reclaimed by last use.
/// One per model; not thread-safe. Allocates in its constructor and where a sequence's block list
/// outgrows its capacity, nowhere else.
class KvCache {
 public:
  /// Tests give a `hash` that collides.
  KvCache(const KvRoom& room, bool prefix_cache, BlockHash hash = HashBlock);
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  /// Blocks are cleared in `store`, their memory, when they are taken: attention multiplies what a
  /// row does not see of a block with 0, which leaves a NaN one, and what earlier sequences left
  /// there may be anything. `store` outlives every later Reserve.
  void ClearTakenBlocksIn(KvStore* store) { store_ = store; }

  /// Takes references to the longest prefix of `tokens` that is cached in the sequence's scope, at
  /// most tokens.size() - 1 so that at least one token is left to compute, which are committed
  /// then. Of a prefix the recent parts that the next row sees must be there too. `sequence` must
  /// be empty. Returns the number of tokens found.
  std::int32_t MatchPrefix(std::span<const Token> tokens, SequenceKv* sequence);

  /// Makes room for positions below `length`, reclaiming cached blocks as needed, and gives back
  /// the recent parts that the committed positions have passed. False, reserving nothing, when the
  /// pools cannot give that many.
  [[nodiscard]] bool Reserve(std::int32_t length, SequenceKv* sequence);

  /// Publishes full blocks whose tokens are all committed, where there is a prefix cache. `tokens`
  /// is the whole sequence so far. Where another block of the same content is published already,
  /// the sequence changes over to it and gives its own back, so slots of committed positions may
  /// change here. Gives back recent parts like Reserve.
  void Publish(std::span<const Token> tokens, SequenceKv* sequence);

  /// Gives back blocks that lie wholly beyond `length` and truncates `committed` to it. Published
  /// blocks are never written again: where `length` cuts into one, it is given back too and the
  /// `committed` falls to its start, from where the caller computes again. It falls to 0 where
  /// recent parts that the next row would see have been passed.
  void Truncate(std::int32_t length, SequenceKv* sequence);

  /// Gives back everything, and withdraws from the prefix cache what nobody else refers to or goes
  /// on from: what the blocks hold is not to be used.
  void Withdraw(SequenceKv* sequence);

  /// Gives back everything; published blocks stay cached.
  void Release(SequenceKv* sequence) { Truncate(0, sequence); }

  /// Withdraws the blocks of a text from the prefix cache, last first, as far as nobody refers to
  /// them and no other text goes on behind them. Returns how many tokens they held.
  std::int32_t Forget(const KvScope& scope, std::span<const Token> tokens);

  /// Blocks that Reserve could give now, as far as recent parts do not run out.
  std::int64_t Available() const { return pool_.free_count() + pool_.idle_count(); }
  /// Whether a sequence of so many blocks, computed bit by bit, would find room now.
  bool HasRoomFor(std::int64_t blocks) const;
  /// How much of the blocks is used, and of the recent parts.
  KvUsage Usage() const { return UsageOf(pool_); }
  KvUsage RecentUsage() const { return UsageOf(recent_.pool()); }

  /// Where each block's recent part lies; empty where no layer sees a window. Lives as long as the
  /// cache, and changes with it.
  std::span<const std::int32_t> recent_places() const { return recent_.places(); }
  const KvRoom& room() const { return room_; }

  /// Recounts every state from scratch and compares; names the first contradiction.
  Status CheckIntegrity() const;

 private:
  static KvUsage UsageOf(const BlockPool& pool);

  bool IsPublished(std::int32_t block) const { return prefix_cache_ && index_.Contains(block); }
  // The first of a sequence's blocks behind its anchors whose recent part is seen from position
  // `committed` on.
  std::int32_t FirstSeen(std::int32_t committed) const {
    if (room_.window == 0) return 0;
    return std::max(room_.anchor_blocks(), committed / kBlockSize - room_.blocks_seen());
  }
  bool HoldsRecent(const SequenceKv& sequence, std::int32_t index) const {
    return room_.window > 0 && (index < room_.anchor_blocks() || index >= sequence.first_recent);
  }
  // Appends the blocks of the longest prefix that can be used.
  void FindPrefix(std::span<const Token> tokens, SequenceKv* sequence) const;
  void TakeBlock(SequenceKv* sequence);
  void DropPassed(SequenceKv* sequence);
  void DropLast(SequenceKv* sequence);
  // Withdraws a published block that nobody refers to or goes on from.
  void Unpublish(std::int32_t block);
  void PublishFull(std::span<const Token> tokens, SequenceKv* sequence);
  void PublishNext(std::span<const Token> tokens, SequenceKv* sequence);
  void ChangeOver(std::int32_t index, std::int32_t published, SequenceKv* sequence);
  Status CheckPublished() const;
  Status CheckRecent() const;

  KvRoom room_;
  bool prefix_cache_;
  BlockPool pool_;
  PrefixIndex index_;
  RecentParts recent_;  // Holds no blocks where no layer sees a window.
  KvStore* store_ = nullptr;
};

/// Zeroes the keys and values of a block.
void ClearBlock(std::int32_t block, KvStore* kv);

/// Memory for the blocks of `cache`, which outlives it, of a model whose layers `shape` names.
KvStore AllocateKv(KvShape shape, const KvCache& cache, Backend* backend);

}  // namespace foretoken
