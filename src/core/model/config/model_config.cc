#include "core/model/config/model_config.h"

#include <cmath>

#include "core/model/config/sublayers.h"

namespace foretoken {
namespace {

std::int64_t NormParameters(const ModelConfig& config, std::int64_t width) {
  return config.norm.bias ? 2 * width : width;
}

std::int64_t LatentParameters(const ModelConfig& config, const AttentionSpec& attention) {
  const LatentSpec& latent = attention.latent;
  const std::int64_t hidden = config.hidden;
  const std::int64_t heads = attention.heads;
  const std::int64_t query = latent.nope_dim + attention.head_dim - latent.kv_rank;
  const std::int64_t queries = latent.query_rank > 0
                                   ? latent.query_rank * (hidden + 1 + heads * query)
                                   : hidden * heads * query;
  return queries + hidden * attention.head_dim + latent.kv_rank +
         heads * latent.kv_rank * (latent.nope_dim + latent.value_dim) +
         hidden * attention.output_width();
}

std::int64_t AttentionParameters(const ModelConfig& config, const AttentionSpec& attention) {
  const std::int64_t hidden = config.hidden;
  if (attention.is_latent()) return LatentParameters(config, attention);
  const std::int64_t kv_parts = attention.keys_as_values ? 1 : 2;
  const std::int64_t made = attention.query_width() + kv_parts * attention.kv_width();
  std::int64_t count = hidden * made + hidden * attention.query_width();
  if (attention.output_gate) count += hidden * attention.query_width();
  if (attention.qkv_bias) count += made;
  if (attention.output_bias) count += hidden;
  if (attention.sinks) count += attention.heads;
  if (attention.qk_norm == AttentionSpec::QkNorm::kEachHead) {
    count += (attention.kv_from >= 0 ? 1 : 2) * attention.head_dim;
  }
  if (attention.qk_norm == AttentionSpec::QkNorm::kAllHeads) {
    count += attention.query_width() + attention.kv_width();
  }
  return count;
}

std::int64_t DeltaParameters(const ModelConfig& config, const DeltaShape& delta) {
  return config.hidden * std::int64_t{delta.row_width() + delta.value_width()} +
         std::int64_t{delta.taps} * delta.conv_width() + 2 * delta.value_heads + delta.value_dim;
}

std::int64_t MlpParameters(const ModelConfig& config, const MlpSpec& mlp) {
  const std::int64_t hidden = config.hidden;
  const std::int64_t width = mlp.intermediate;
  const std::int64_t each = 3 * width * hidden + (mlp.bias ? 2 * width + hidden : 0);
  if (!mlp.has_experts()) return each;
  const int biases = (mlp.router_bias ? 1 : 0) + (mlp.choice_bias ? 1 : 0);
  return mlp.routing.experts * (each + hidden + biases) + 3 * hidden * mlp.shared_intermediate +
         (mlp.shared_gate ? hidden : 0) + (mlp.apart ? 4 * hidden + mlp.routing.experts : 0);
}

std::int64_t MarkovParameters(const ModelConfig& config) {
  const MarkovSpec& markov = config.markov;
  const std::int64_t rank = markov.rank;
  std::int64_t count = rank * (config.embeddings() + config.vocabulary);
  if (markov.kind == MarkovSpec::Kind::kGated) count += rank * (config.hidden + rank + 1);
  if (markov.kind == MarkovSpec::Kind::kRecurrent) {
    count += 3 * rank * (config.hidden + 2 * rank + 1);
  }
  return count + (markov.confidence ? markov.confidence_width(config.hidden) + 1 : 0);
}

std::int64_t HeadParameters(const ModelConfig& config) {
  const FeatureSpec& feature = config.feature;
  const std::int64_t width = config.hidden;
  std::int64_t each = feature.head_blocks * width * (width + 1) + width * config.vocabulary;
  if (!feature.sequential()) return feature.heads * each;
  // The first block has a second matrix, both are wider by a token more in each head, and logits
  // have biases.
  each += width * (width + 1) + config.vocabulary;
  return feature.heads * each +
         2 * width * width * feature.heads * (std::int64_t{feature.heads} + 1) / 2;
}

}  // namespace

const AttentionSpec& ModelConfig::first_attention() const {
  static const AttentionSpec kNothing;
  if (layers.empty()) return kNothing;
  const auto found = std::ranges::find_if(
      layers, [](const LayerSpec& layer) { return layer.attention.heads > 0; });
  return (found == layers.end() ? layers.begin() : found)->attention;
}

std::int64_t ModelConfig::parameters() const {
  if (feature.join == FeatureSpec::Join::kHeads) return HeadParameters(*this);
  // Around each of a layer's sub-layers; one before both may be the same.
  const int norms = (block.norm_before ? 1 : 0) + (block.norm_after ? 1 : 0);
  std::int64_t count = NormParameters(*this, hidden);
  if (feature.sequential()) count = HeadParameters(*this) + (layers.empty() ? 0 : count);
  if (layer_input > 0) {
    // Each layer has its part of the table and of the projection, its gate and its projection.
    const std::int64_t each = std::int64_t{embeddings()} + 3 * std::int64_t{hidden};
    count += layer_input * (each * layer_count() + 1) + std::int64_t{hidden} * layer_count();
  }
  if (block.own_scale) count += layer_count();
  if (markov.there()) count += MarkovParameters(*this);
  for (const LayerSpec& layer : layers) {
    count += layer.is_recurrent() ? DeltaParameters(*this, layer.delta)
                                  : AttentionParameters(*this, layer.attention);
    count += MlpParameters(*this, layer.mlp);
    const int sublayers = (HasMixer(layer) ? 1 : 0) + (HasMlp(layer) ? 1 : 0);
    const int shared = block.norm_before && block.shared_norm && sublayers == 2 ? 1 : 0;
    count += (norms * sublayers - shared) * NormParameters(*this, hidden);
  }
  const std::int64_t head = tied_embeddings || feature.sequential() ? 0 : vocabulary;
  return count + hidden * (embeddings() + head);
}

int RotatedDims(const ModelConfig& config, const AttentionSpec& attention) {
  if (attention.rope < 0) return attention.head_dim;
  return config.ropes[attention.rope].dims;
}

ModelConfig LlamaConfig(const LlamaSizes& sizes) {
  ModelConfig config;
  config.architecture = "LlamaForCausalLM";
  config.family = "llama";
  config.hidden = sizes.hidden;
  config.vocabulary = sizes.vocabulary;
  config.max_positions = sizes.max_positions;
  config.norm.epsilon = 1e-5F;
  config.tied_embeddings = sizes.tied_embeddings;
  config.ropes = {{.theta = sizes.rope_theta, .dims = sizes.head_dim}};
  LayerSpec layer;
  layer.attention.heads = sizes.heads;
  layer.attention.kv_heads = sizes.kv_heads;
  layer.attention.head_dim = sizes.head_dim;
  layer.attention.scale = 1 / std::sqrt(static_cast<double>(sizes.head_dim));
  layer.mlp.intermediate = sizes.intermediate;
  config.layers.assign(sizes.layers, layer);
  return config;
}

}  // namespace foretoken
