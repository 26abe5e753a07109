#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/kv/block_bytes.h"
#include "core/kv/kv_cache.h"

namespace foretoken {

/// The keys and values of a text's beginning, on their way out of an engine or into it, in whole
/// blocks and as many of these at a time as one likes: the engine may step in between. Blocks are
/// held meanwhile, but give way to sequences that need them. All is for the thread that steps the
/// engine, which outlives this.
class PrefixTransfer {
 public:
  PrefixTransfer(Engine& engine, KvScope scope, std::vector<Token> tokens);
  ~PrefixTransfer();
  PrefixTransfer(const PrefixTransfer&) = delete;
  PrefixTransfer& operator=(const PrefixTransfer&) = delete;

  /// How the numbers in blocks lie: files of engines that say the same are each other's.
  std::string Layout() const;
  /// Bytes of block `index` in a text of `blocks` blocks: those of layers that see a window only
  /// where the row behind the text sees them.
  std::size_t BytesOf(std::int32_t index, std::int32_t blocks) const;

  /// Takes what of the text is in the prefix cache; returns how many blocks. To be called first.
  std::int32_t Match();
  /// Copies block `index` of `blocks`, which Match has found, to `to` [BytesOf]. False: it has been
  /// given away.
  [[nodiscard]] bool CopyOut(std::int32_t index, std::int32_t blocks,
                             std::span<std::byte> to) const;
  /// Copies the block behind those that Match has found and this has copied: `index` of `blocks`.
  /// False: there is no room, or the blocks before it have been given away.
  [[nodiscard]] bool CopyIn(std::int32_t index, std::int32_t blocks,
                            std::span<const std::byte> from);
  bool AreSound(std::int32_t index, std::int32_t blocks, std::span<const std::byte> bytes) const;
  /// Enters all that was copied in into the prefix cache. False: it has been given away.
  [[nodiscard]] bool Publish();

 private:
  bool HasRecent(std::int32_t index, std::int32_t blocks) const;
  bool Holds(std::int32_t blocks) const { return std::ssize(held_.blocks) >= blocks; }

  Scheduler* scheduler_;
  KvStore* store_;
  BlockBytes bytes_;
  std::vector<Token> tokens_;
  SequenceKv held_;
};

/// Has an engine forget the text of a scope, as KvCache::Forget does.
std::int32_t ForgetPrefix(Engine& engine, const KvScope& scope, std::span<const Token> tokens);

}  // namespace foretoken
