#include "model/decoder/decoder_weights.h"

#include "base/check.h"

#include "model/decoder/rope.h"
#include "tensor/half.h"

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

std::size_t LayerWeights::bytes_of_row(const MlpSpec& mlp) const {
  std::size_t bytes = gate_up.bytes() + down.bytes();
  if (mlp.has_experts()) {
    const auto experts = static_cast<std::size_t>(mlp.routing.experts);
    bytes = bytes / experts * static_cast<std::size_t>(mlp.routing.chosen);
  }
  bytes += sinks.bytes() + choice_bias.bytes() + delta.bytes() + latent.bytes() + scale.bytes() +
           expert_factors.bytes();
  for (const NormWeights* norm :
       {&attention_norm, &q_norm, &k_norm, &v_norm, &attention_post_norm, &mlp_norm, &mlp_post_norm,
        &input_post_norm, &router_norm, &experts_norm, &experts_post_norm, &shared_post_norm}) {
    bytes += norm->bytes();
  }
  for (const LinearWeights* linear : {&qkv, &output_gate, &output, &router, &shared_gate_up,
                                      &shared_down, &shared_gate, &input_gate, &input_projection}) {
    bytes += linear->bytes();
  }
  return bytes;
}

DecoderWeights::DecoderWeights(const ModelConfig& config, const Backend& backend,
                               DecoderTensors packed)
    : tensors(std::move(packed)),
      ropes(MakeRopeTables(config)),
      config_(config),
      layout_(backend.layout()) {}

std::size_t DecoderWeights::bytes_of_pass() const {
  std::size_t bytes = head().data.bytes() + tensors.output_norm.bytes() +
                      tensors.layer_inputs.projection.bytes() + tensors.layer_inputs.norm.bytes() +
                      tensors.feature.bytes() + tensors.markov.bytes();
  std::size_t heads = 0;
  for (const DraftHead& each : tensors.heads) heads += each.bytes();
  // Of sequential ones a row reads one.
  bytes += config_.feature.sequential() ? heads / tensors.heads.size() : heads;
  for (std::size_t i = 0; i < tensors.layers.size(); ++i) {
    bytes += tensors.layers[i].bytes_of_row(config_.layers[i].mlp);
  }
  return bytes;
}

}  // namespace foretoken
