#include "model/decoder/decoder_weights.h"

#include "model/decoder/rope.h"

namespace foretoken {
namespace {

std::vector<RopeTable> MakeRopeTables(const ModelConfig& config) {
  std::vector<RopeTable> tables;
  for (const RopeSpec& rope : config.ropes) {
    tables.push_back(MakeRopeTable(rope, config.max_positions));
  }
  return tables;
}

}  // namespace

void Multiply(const LinearWeights& linear, const float* x, int rows, Backend* backend, float* y) {
  if (linear.bias.bytes() == 0) return backend->MatMul(linear.matrix, x, rows, y);
  backend->FillRows(linear.bias.as<float>(), rows, linear.matrix.outputs, y);
  backend->MatMulAdd(linear.matrix, x, rows, y);
}

std::size_t LayerWeights::bytes_of_row(const MlpSpec& mlp) const {
  std::size_t bytes = gate_up.bytes() + down.bytes();
  if (mlp.has_experts()) {
    const auto experts = static_cast<std::size_t>(mlp.routing.experts);
    bytes = bytes / experts * static_cast<std::size_t>(mlp.routing.chosen);
  }
  bytes += sinks.bytes() + choice_bias.bytes() + delta.bytes();
  for (const NormWeights* norm :
       {&attention_norm, &q_norm, &k_norm, &attention_post_norm, &mlp_norm, &mlp_post_norm}) {
    bytes += norm->bytes();
  }
  for (const LinearWeights* linear :
       {&qkv, &output_gate, &output, &router, &shared_gate_up, &shared_down, &shared_gate}) {
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
  std::size_t bytes = head().data.bytes() + tensors.output_norm.bytes();
  for (std::size_t i = 0; i < tensors.layers.size(); ++i) {
    bytes += tensors.layers[i].bytes_of_row(config_.layers[i].mlp);
  }
  return bytes;
}

}  // namespace foretoken
