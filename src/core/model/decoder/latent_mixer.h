#pragma once

#include <cstddef>
#include <vector>

#include "core/backend/backend.h"
#include "core/model/decoder/decoder_weights.h"

namespace foretoken {

/// What multi-head latent attention does around the attention of its layers. Keys and values are
/// kept as one row of numbers for all heads, of which each head would make a key and a value of its
/// own. These are never made: what a head's matrix for keys does to a key is done to its query
/// instead, and what its matrix for values does to each value is done once, to their weighted sum.
/// All rows are computed so, those of prompts too, for their bits must not depend on how many there
/// are. Owns the room that it takes.
class LatentMixer {
 public:
  /// Makes room for that many rows of any layer.
  void GrowTo(std::size_t rows, const ModelConfig& config);

  /// Makes of rows x [rows, hidden] what Backend::Attention takes: qkv [rows, row_width], the
  /// queries of all heads and one key that holds its value, not rotated yet.
  void Fold(const AttentionSpec& spec, const LatentWeights& weights, const float* x, int rows,
            Backend* backend, float* qkv);

  /// The values of heads [rows, heads * value_dim] in place of the sums [rows, heads * kv_rank]
  /// that attention has made.
  void Unfold(const AttentionSpec& spec, const LatentWeights& weights, int rows, Backend* backend,
              float* attended);

 private:
  // Each head's rows, one head behind the other, are a group.
  void GroupByHead(int heads, int rows);

  std::vector<RowGroup> groups_;
  Buffer compressed_;  // [rows, query_rank]
  Buffer queries_;     // [rows, heads, nope_dim + rotated]
  Buffer keys_;        // [rows, kv_rank + rotated]
  Buffer by_head_;     // [heads, rows, nope_dim or kv_rank]: what a head's matrix is given,
  Buffer made_;        // [heads, rows, kv_rank or value_dim]: and what it makes of it.
};

}  // namespace foretoken
