#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/backend/backend.h"
#include "core/model/adapter/adapter_set.h"
#include "core/model/config/model_config.h"
#include "core/model/decoder/decoder_weights.h"
#include "core/model/decoder/float_buffer.h"
#include "core/model/model.h"

namespace foretoken {

/// Adds to the products of a pass what the adapter of each row makes of its inputs:
/// y += up * (scale * (down * x)). Rows are ordered by adapter, so that a pass reads the factors of
/// each once; a row's bits are those that it has alone, and rows without an adapter are left as
/// they are. Owns the room that it takes.
class AdapterMixer {
 public:
  /// With null no row has an adapter.
  explicit AdapterMixer(std::shared_ptr<const AdapterSet> adapters)
      : adapters_(std::move(adapters)) {}

  int count() const { return adapters_ == nullptr ? 0 : adapters_->count(); }

  /// Makes room for that many rows.
  void GrowTo(std::size_t rows);

  /// Takes up the rows of a pass: what Add is about until the next call.
  void Begin(std::span<const ForwardRow> rows);

  /// y [rows, outputs] is the product of x [rows, inputs] and the matrix.
  void Add(int layer, AdaptedMatrix matrix, const float* x, float* y, Backend* backend);

 private:
  /// A row with an adapter.
  struct Adapted {
    AdapterUse use;
    int row = 0;  // Its number in the pass.
  };

  void AddStack(const FactorStack& stack, std::span<const Adapted> rows, const float* x, float* y,
                Backend* backend);

  std::shared_ptr<const AdapterSet> adapters_;
  std::vector<Adapted> rows_;  // By adapter, then in the order of the pass.
  std::vector<RowGroup> groups_;
  Buffer inputs_;   // [rows, inputs], in the order of rows_, as is what follows.
  Buffer reduced_;  // [rows, rank]
  Buffer made_;     // [rows, outputs]
};

/// What gated delta layers do in place of attention: rows through the layer's heads, whose states
/// remember the rows before, then each head normalised and gated. Owns the room that it takes.
class DeltaMixer {
 public:
  /// Makes room for that many rows of any layer.
  void GrowTo(std::size_t rows, const ModelConfig& config);

  /// out [rows, value_width] for rows x [rows, hidden]; `number` is that of the layer among those
  /// of its kind.
  void Mix(const LayerSpec& spec, const LayerWeights& layer, const NormSpec& norm, int number,
           const float* x, const BatchPlan& plan, Backend* backend, KvStore& kv, float* out);

 private:
  Buffer inputs_;  // [rows, row_width]
  Buffer heads_;   // [rows, 2 * value_width]: gates, then what heads have read.
};

/// What the parts of a mixture read of rows, [rows, hidden] each.
struct ExpertInputs {
  const float* router;
  const float* experts;
  const float* shared;
};

/// Sends rows through the experts that they choose. Rows are ordered by expert, so that a pass
/// reads the weights of each chosen expert once; what the experts of a row make is added up in the
/// order in which the row chose them, whatever other rows there are; what the expert makes that all
/// rows share comes last. Owns the room that it takes.
class ExpertMixer {
 public:
  /// Makes room for that many rows of any layer.
  void GrowTo(std::size_t rows, const ModelConfig& config);

  /// What the experts of a layer make of rows x, [rows, hidden]; valid, and the caller's to change,
  /// until the next call. `epsilon` is of the norms of experts that are apart.
  float* Mix(const MlpSpec& mlp, const LayerWeights& layer, const ExpertInputs& x, float epsilon,
             int rows, Backend* backend);

 private:
  void Choose(const MlpSpec& mlp, const LayerWeights& layer, const float* x, int rows,
              Backend* backend);
  void OrderByExpert(const Routing& routing, int rows);
  void AddShared(const MlpSpec& mlp, const LayerWeights& layer, const float* x, float epsilon,
                 int rows, Backend* backend);

  std::vector<std::int32_t> experts_;  // [rows, chosen]
  std::vector<std::int32_t> places_;   // [rows, chosen]: where each lies in that order.
  std::vector<std::int32_t> ends_;     // Where each expert's rows end.
  std::vector<RowGroup> groups_;
  Buffer scores_;   // [rows, experts]
  Buffer weights_;  // [rows, chosen]
  Buffer inputs_;   // [rows * chosen, hidden], in that order, as is what follows.
  Buffer gate_up_;  // [rows * chosen, 2 * intermediate]; then of the shared expert, as are
  Buffer mixed_;    // [rows * chosen, intermediate]
  Buffer made_;     // [rows * chosen, hidden]
  Buffer sums_;     // [rows, hidden]
};

/// Makes the beginning of a learned drafter's rows of their tokens and features (FeatureSpec).
/// Keeps the room for that.
class FeatureMixer {
 public:
  void GrowTo(std::size_t rows, const ModelConfig& config);

  /// `stream` [rows, hidden] has the tokens' embeddings, and gets what the residual stream begins
  /// as.
  void Begin(const ModelConfig& config, const FeatureWeights& weights,
             std::span<const ForwardRow> rows, Backend* backend, float* stream);

  /// What rows of features alone are to every layer's keys and values, [rows, hidden], valid until
  /// the next call: Join::kContext.
  const float* Context(const ModelConfig& config, const FeatureWeights& weights,
                       std::span<const ForwardRow> rows, Backend* backend);

  /// What the first layer's attention reads, [rows, 2 * hidden]: Join::kAttended.
  const float* attended() const { return pairs_.as<float>(); }

 private:
  void MakeFeatures(const ModelConfig& config, const FeatureWeights& weights,
                    std::span<const ForwardRow> rows, Backend* backend);

  Buffer kept_;      // [rows with one, tap_width]
  Buffer reduced_;   // [rows with one, hidden]
  Buffer features_;  // [rows, hidden]
  Buffer normed_;    // [rows, hidden]
  Buffer pairs_;     // [rows, 2 * hidden]
};

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
