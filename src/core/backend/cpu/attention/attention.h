#pragma once

#include <algorithm>

#include "base/numbers/integers.h"
#include "core/backend/backend.h"
#include "core/backend/cpu/kernels.h"
#include "core/tensor/buffer.h"

namespace foretoken::cpu {

/// Bytes of the keys, and of the values, of a KvChunk.
constexpr std::size_t ChunkBytes(KvFormat format, int head_dim) {
  const auto numbers = Size(kBlockSize) * PadToChunk(head_dim);
  switch (format) {
    case KvFormat::kBF16:
      return numbers * 2;
    case KvFormat::kF32:
      return numbers * 4;
    case KvFormat::kQ8_0:  // A scale for 32 of them.
      return numbers + numbers / 32 * sizeof(float);
  }
  return 0;
}

/// Where the keys and values of layer `layers` would begin: behind those of the ones before.
KvStore::Begin BeginOf(const KvShape& shape, std::size_t layers, KvFormat format);

/// Where the keys and values of a block and head of one layer lie in a KvStore, which it borrows.
struct KvLayout {
  KvLayout(const KvStore& kv, int layer, KvFormat format)
      : shape(kv.shape.layers[layer]),
        chunk_bytes(ChunkBytes(format, shape.head_dim)),
        places(kv.PlacesIn(layer)) {
    const KvStore::Begin& begin = kv.layers[layer];
    keys = const_cast<char*>(kv.keys.as<char>()) + begin.keys;
    if (shape.latent == 0) values = const_cast<char*>(kv.values.as<char>()) + begin.values;
  }

  /// The chunk that `slot` lies in; it may be written to where the store may.
  KvChunk ChunkOf(std::int32_t slot, int head) const {
    const std::int64_t block = places == nullptr ? slot / kBlockSize : places[slot / kBlockSize];
    const std::size_t offset = Size(block * shape.kv_heads + head) * chunk_bytes;
    return {keys + offset, values == nullptr ? nullptr : values + offset};
  }

  KvLayer shape;
  std::size_t chunk_bytes;
  const std::int32_t* places;
  char* keys = nullptr;
  char* values = nullptr;  // Null where keys hold them.
};

/// One call of Backend::Attention.
struct AttentionCall {
  const BatchPlan& plan;
  const HeadShape& heads;
  const AttentionRule& rule;
  const float* qkv;
  KvLayout layout;
  float* out;
};

/// Attends some rows of one sequence to the keys of one head, on one thread. Rows whose keys lie
/// at the same place are computed together as a matrix product; keys that are scattered over tail
/// slots are first gathered into a chunk of the same layout, so the arithmetic is the same.
class AttentionWorker {
 public:
  AttentionWorker(const Kernels& kernels, KvFormat format)
      : ops_(kernels.attention[static_cast<std::size_t>(format)]), finish_(kernels.finish) {}

  /// Makes room for calls of Run with up to so many queries: rows times heads that share keys.
  void Grow(int queries, const HeadShape& heads);

  /// Rows [begin, end) of the plan, all of one sequence; there is room for their queries.
  void Run(const AttentionCall& call, int begin, int end, int kv_head);

 private:
  struct Source;

  void Clear(int queries, const HeadShape& heads);
  void Begin(const AttentionRule& rule, int group, int kv_head);
  // Where `chunk` lies if `row` has it on the trunk, else null.
  static KvChunk TrunkChunk(const AttentionCall& call, const RowPlace& row, int kv_head, int chunk);
  // `next_chunk` is fetched meanwhile.
  void Chunk(const AttentionCall& call, int begin, int end, int kv_head, int chunk,
             KvChunk next_chunk);
  Source Find(const AttentionCall& call, const RowPlace& row, int kv_head, int chunk);
  KvChunk Gather(const AttentionCall& call, const std::int32_t* slots, int count, int kv_head);
  // `chunk` with values, made of its keys where it has none.
  KvChunk WithValues(const AttentionCall& call, KvChunk chunk);

  const AttentionKernels& ops_;
  void (*finish_)(const AttentionState& state, int query, float* to);
  AttentionState state_{};
  Buffer q_, out_, sums_, maxima_, hidden_, seen_;
  Buffer gathered_keys_, gathered_values_;
  Buffer values_;  // The values that keys hold, where attention is latent.
  std::int32_t gathered_slots_[kBlockSize] = {};
  bool gathered_any_ = false;  // In the current chunk.
};

}  // namespace foretoken::cpu
