#include "core/model/decoder/decoder_weights.h"

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/model/config/sublayers.h"
#include "core/model/decoder/rope.h"
#include "core/tensor/half.h"

namespace foretoken {
namespace {

std::vector<RopeTable> MakeRopeTables(const ModelConfig& config) {
  std::vector<RopeTable> tables;
  for (const RopeSpec& rope : config.ropes) {
    // Rows of a block may stand behind the last position, where nothing is taken from them.
    tables.push_back(MakeRopeTable(rope, config.max_positions + config.parallel.block));
  }
  return tables;
}

std::size_t BytesOfMixer(const LayerWeights& layer) {
  std::size_t bytes = layer.sinks.bytes() + layer.delta.bytes() + layer.latent.bytes();
  for (const NormWeights* norm : {&layer.attention_norm, &layer.q_norm, &layer.k_norm,
                                  &layer.v_norm, &layer.attention_post_norm}) {
    bytes += norm->bytes();
  }
  for (const LinearWeights* linear : {&layer.qkv, &layer.output_gate, &layer.output}) {
    bytes += linear->bytes();
  }
  return bytes;
}

std::size_t BytesOfMlp(const LayerWeights& layer, const MlpSpec& mlp) {
  std::size_t bytes = layer.gate_up.bytes() + layer.down.bytes();
  if (mlp.has_experts()) {
    const std::size_t experts = mlp.routing.experts;
    bytes = bytes / experts * Size(mlp.routing.chosen);
  }
  bytes += layer.choice_bias.bytes() + layer.expert_factors.bytes();
  for (const NormWeights* norm :
       {&layer.mlp_norm, &layer.mlp_post_norm, &layer.router_norm, &layer.experts_norm,
        &layer.experts_post_norm, &layer.shared_post_norm}) {
    bytes += norm->bytes();
  }
  for (const LinearWeights* linear :
       {&layer.router, &layer.shared_gate_up, &layer.shared_down, &layer.shared_gate}) {
    bytes += linear->bytes();
  }
  return bytes;
}

}  // namespace

void Multiply(const LinearWeights& linear, const float* x, int rows, Backend* backend, float* y) {
  if (linear.bias.bytes() == 0) return backend->MatMul(linear.matrix, x, rows, y);
  backend->FillRows(linear.bias.as<float>(), rows, linear.matrix.outputs, y);
  backend->MatMulAdd(linear.matrix, x, rows, y);
}

void Embed(const EmbeddingTable& table, std::span<const Token> tokens, std::int64_t width,
           Backend* backend, float* out) {
  if (table.packed.outputs > 0) return backend->Embed(table.packed, tokens, out);
  const std::int64_t rows = table.stored.view.shape.front();
  float* to = out;
  for (const Token token : tokens) {
    FT_CHECK(token >= 0 && token < rows, "token {} of {}", token, rows);
    LoadElements(table.stored.view, token * width, width, to);
    to += width;
  }
  if (backend->precision() != Precision::kBF16) return;
  for (float* value = out; value < to; ++value) *value = BFloat16ToFloat(FloatToBFloat16(*value));
}

std::size_t DraftHead::bytes() const {
  std::size_t bytes = entry.bytes() + entry_residual.bytes() + logits.bytes();
  for (const LinearWeights& block : blocks) bytes += block.bytes();
  return bytes;
}

std::size_t FeatureWeights::bytes() const {
  std::size_t bytes = reduction.bytes() + token_norm.bytes() + feature_norm.bytes() + join.bytes();
  for (const NormWeights& norm : tap_norms) bytes += norm.bytes();
  return bytes;
}

std::size_t LatentWeights::bytes() const {
  return query_down.bytes() + query_norm.bytes() + query.bytes() + kv_down.bytes() +
         kv_norm.bytes() + key_up.data.bytes() + value_up.data.bytes();
}

std::size_t LayerWeights::bytes_of_row(const LayerSpec& spec) const {
  const bool mixes = HasMixer(spec);
  const bool has_mlp = HasMlp(spec);
  if (!mixes && !has_mlp) return 0;
  return (mixes ? BytesOfMixer(*this) : 0) + (has_mlp ? BytesOfMlp(*this, spec.mlp) : 0) +
         input_gate.bytes() + input_projection.bytes() + input_post_norm.bytes() + scale.bytes();
}

DecoderWeights::DecoderWeights(const ModelConfig& config, const Backend& backend,
                               DecoderTensors packed)
    : packed_(std::make_shared<const Packed>(Packed{std::move(packed), MakeRopeTables(config)})),
      tensors(packed_->tensors),
      ropes(packed_->ropes),
      config_(config),
      layout_(backend.layout()) {}

DecoderWeights::DecoderWeights(const ModelConfig& config, const DecoderWeights& whole)
    : packed_(whole.packed_),
      tensors(packed_->tensors),
      ropes(packed_->ropes),
      config_(config),
      layout_(whole.layout_) {
  FT_CHECK(config.layer_count() == whole.config_.layer_count() &&
               config.ropes == whole.config_.ropes &&
               config.max_positions <= whole.config_.max_positions,
           "not a part of the model whose weights these are");
}

std::shared_ptr<const ModelWeights> DecoderWeights::Part(const ModelConfig& config) const {
  return std::make_shared<DecoderWeights>(config, *this);
}

std::size_t DecoderWeights::bytes_of_pass() const {
  std::size_t bytes = head().data.bytes() + tensors.output_norm.bytes() +
                      tensors.layer_inputs.projection.bytes() + tensors.layer_inputs.norm.bytes() +
                      tensors.feature.bytes() + tensors.markov.bytes();
  std::size_t heads = 0;
  for (const DraftHead& each : tensors.heads) heads += each.bytes();
  // A row reads one of sequential heads.
  bytes += config_.feature.sequential() ? heads / tensors.heads.size() : heads;
  for (std::size_t i = 0; i < tensors.layers.size(); ++i) {
    bytes += tensors.layers[i].bytes_of_row(config_.layers[i]);
  }
  return bytes;
}

}  // namespace foretoken
