#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/backend/backend.h"
#include "core/model/model_weights.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// The gain of a norm and, where it has one, its bias; both float32. Empty where there is no norm.
struct NormWeights {
  Buffer gain;
  Buffer bias;

  bool there() const { return gain.bytes() > 0; }
  std::size_t bytes() const { return gain.bytes() + bias.bytes(); }
};

/// A weight matrix and, where it has one, what is added to its outputs, float32.
struct LinearWeights {
  Matrix matrix;
  Buffer bias;

  std::size_t bytes() const { return matrix.bytes() + bias.bytes(); }
};

/// y [rows, outputs] = x [rows, inputs] * weights^T + bias.
void Multiply(const LinearWeights& linear, const float* x, int rows, Backend* backend, float* y);

/// What makes queries and keys of multi-head latent attention, and values of what it has summed up.
struct LatentWeights {
  LinearWeights query_down;  ///< [query_rank, hidden]; empty where queries have no rank.
  NormWeights query_norm;
  LinearWeights query;    ///< [heads * (nope_dim + rotated), query_rank or hidden]
  LinearWeights kv_down;  ///< [kv_rank + rotated, hidden]
  NormWeights kv_norm;    ///< Normalises the first kv_rank.
  Matrix key_up;          ///< [heads][kv_rank, nope_dim]
  Matrix value_up;        ///< [heads][value_dim, kv_rank]

  std::size_t bytes() const;
};

/// The packed weights of a gated delta layer.
struct DeltaLayerWeights {
  LinearWeights inputs;  ///< [row_width, hidden]: rows of inputs as DeltaShape describes them.
  Buffer taps;           ///< As DeltaWeights describes them, float32.
  Buffer rates;
  Buffer rate_bias;
  NormWeights norm;  ///< [value_dim]: of what each head reads.

  DeltaWeights learned() const {
    return {taps.as<float>(), rates.as<float>(), rate_bias.as<float>()};
  }
  std::size_t bytes() const {
    return inputs.bytes() + taps.bytes() + rates.bytes() + rate_bias.bytes() + norm.bytes();
  }
};

/// What makes the beginning of a learned drafter's rows (FeatureSpec).
struct FeatureWeights {
  std::vector<NormWeights> tap_norms;  ///< [tapped] each, or one of all.
  Buffer mask;                         ///< [tap_width], float32: of rows without a feature.
  LinearWeights reduction;             ///< [hidden, tap_width]
  NormWeights token_norm;
  NormWeights feature_norm;
  LinearWeights join;  ///< [hidden, 2 * hidden]

  std::size_t bytes() const;
};

/// The packed weights of one layer; what its model's description leaves out is empty.
struct LayerWeights {
  NormWeights attention_norm;
  LinearWeights qkv;  ///< [row_width, hidden]: all query heads, then keys, then values.
  NormWeights q_norm;
  NormWeights k_norm;
  NormWeights v_norm;  ///< A gain of ones.
  LatentWeights latent;
  Buffer sinks;               ///< [heads], float32.
  LinearWeights output_gate;  ///< [query_width, hidden]
  DeltaLayerWeights delta;    ///< In place of all of attention but its norms and `output`.
  LinearWeights output;
  NormWeights attention_post_norm;
  NormWeights mlp_norm;
  LinearWeights router;   ///< [experts, hidden]; where there is one, gate_up and down are stacks.
  Buffer choice_bias;     ///< [experts], float32.
  LinearWeights gate_up;  ///< [2 * intermediate, hidden]: gate, then up.
  LinearWeights down;
  LinearWeights shared_gate_up;  ///< The shared expert's gate_up.
  LinearWeights shared_down;
  LinearWeights shared_gate;  ///< [1, hidden]: what the shared expert is multiplied with.
  /// Normalises the stream for the router, where experts are apart.
  NormWeights router_norm;
  NormWeights experts_norm;       ///< Normalises the stream for experts, where they are apart.
  NormWeights experts_post_norm;  ///< Normalises what experts make, where they are apart.
  /// Normalises what the shared expert makes, where experts are apart.
  NormWeights shared_post_norm;
  Buffer expert_factors;  ///< [experts], float32: of what they weigh.
  NormWeights mlp_post_norm;
  /// [layer_input, hidden]: makes the gate of each token's input to the layer.
  LinearWeights input_gate;
  /// [hidden, layer_input]: makes the gated input part of the stream.
  LinearWeights input_projection;
  NormWeights input_post_norm;
  Buffer scale;  ///< One float, what the stream is multiplied by behind the layer.

  /// The bytes that one row reads in a layer of this description, which may leave some of them out.
  std::size_t bytes_of_row(const LayerSpec& spec) const;
};

/// What tokens begin with, [vocabulary, hidden].
struct EmbeddingTable {
  Matrix packed;  ///< Where it is the head too, or lies in no file.
  /// Else it stays as it is stored: a pass reads a row for each token, and several processes share
  /// the pages of a mapped file.
  TensorBytes stored;
  std::vector<std::shared_ptr<const MappedFile>> files;  ///< What `stored` borrows.
};

/// Rows of a table for tokens [count], out [count, width]; rounded as a packed table would be.
void Embed(const EmbeddingTable& table, std::span<const Token> tokens, std::int64_t width,
           Backend* backend, float* out);

/// A head that says one position from the target's state (FeatureSpec::has_heads).
struct DraftHead {
  /// The layer that makes [hidden] of the state and n + 1 tokens in sequential head number n,
  /// [hidden, (n + 2) * hidden]: SiLU of the first's outputs and the second's; both with biases.
  LinearWeights entry;
  LinearWeights entry_residual;
  std::vector<LinearWeights> blocks;  ///< [hidden, hidden], each with biases.
  LinearWeights logits;               ///< [vocabulary, hidden]; of sequential heads with biases.

  std::size_t bytes() const;
};

/// What tokens add to what is said of the positions behind them (MarkovSpec).
struct MarkovWeights {
  EmbeddingTable tokens;     ///< [embeddings, rank]
  Matrix output;             ///< [vocabulary, rank]
  LinearWeights gate;        ///< [rank, hidden + rank]: of a state and numbers of a token.
  LinearWeights cell;        ///< [3 * rank, 2 * rank + hidden]: of the cell's state, numbers of a
                             ///< token and a state; gate, candidate and output.
  LinearWeights confidence;  ///< [1, MarkovSpec::confidence_width]

  std::size_t bytes() const {
    return output.bytes() + gate.bytes() + cell.bytes() + confidence.bytes();
  }
};

/// What every layer's inputs are made of.
struct LayerInputWeights {
  EmbeddingTable table;      ///< [vocabulary, layers * layer_input]
  LinearWeights projection;  ///< [layers * layer_input, hidden]
  NormWeights norm;          ///< [layer_input], of each layer's part of the projection.
};

/// The weights of a whole decoder, packed but for the embedding table.
struct DecoderTensors {
  EmbeddingTable embedding;
  LayerInputWeights layer_inputs;
  FeatureWeights feature;
  std::vector<LayerWeights> layers;
  std::vector<DraftHead> heads;  ///< In place of `head`.
  NormWeights output_norm;
  MarkovWeights markov;
  Matrix head;  ///< Empty where the embedding table is the head too.
  std::vector<std::shared_ptr<const MappedFile>> files;  ///< What experts borrow that stay there.
};

/// The weights of a decoder and what else its passes only read.
class DecoderWeights final : public ModelWeights,
                             public std::enable_shared_from_this<DecoderWeights> {
  // What is large, and the same for a model and its parts.
  struct Packed {
    DecoderTensors tensors;
    std::vector<RopeTable> ropes;
  };
  std::shared_ptr<const Packed> packed_;

 public:
  /// Takes `packed` as `backend` has packed it.
  DecoderWeights(const ModelConfig& config, const Backend& backend, DecoderTensors packed);
  /// Shares the weights of `whole`, for ModelWeights::Part.
  DecoderWeights(const ModelConfig& config, const DecoderWeights& whole);

  const ModelConfig& config() const override { return config_; }
  std::shared_ptr<const ModelWeights> Part(const ModelConfig& config) const override;
  using ModelWeights::MakeModel;
  std::unique_ptr<Model> MakeModel(Backend* backend,
                                   std::shared_ptr<const AdapterSet> adapters) const override;

  const Matrix& head() const {
    return config_.tied_embeddings ? tensors.embedding.packed : tensors.head;
  }
  /// As Model::weight_bytes.
  std::size_t bytes_of_pass() const;

  const DecoderTensors& tensors;
  const std::vector<RopeTable>& ropes;  ///< The tables of ModelConfig::ropes.

 private:
  ModelConfig config_;
  std::string_view layout_;
};

}  // namespace foretoken
