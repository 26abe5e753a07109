#include "core/model/decoder/layer_inputs.h"

#include <cmath>
#include <numbers>

#include "base/numbers/integers.h"
#include "core/model/decoder/float_buffer.h"

namespace foretoken {

void LayerInputs::GrowTo(std::size_t rows, const ModelConfig& config) {
  const std::size_t width = config.layer_input;
  const std::size_t all = rows * width * Size(config.layer_count());
  GrowFloats(inputs_, all);
  GrowFloats(rows_, all);
  GrowFloats(gates_, rows * width);
  GrowFloats(gate_up_, rows * 2 * width);
}

void LayerInputs::Prepare(const ModelConfig& config, const LayerInputWeights& weights,
                          std::span<const Token> tokens, const float* hidden, Backend* backend) {
  const int width = config.layer_input;
  const int rows = tokens.size();
  const std::int64_t of_row = std::int64_t{width} * config.layer_count();
  const std::int64_t all = rows * of_row;
  float* const inputs = inputs_.as<float>();
  Multiply(weights.projection, hidden, rows, backend, inputs);
  backend->Scale(1 / std::sqrt(static_cast<float>(config.hidden)), all, inputs);
  const PartsNorm norm{NormKind::kRms, config.norm.epsilon, weights.norm.gain.as<float>(), false};
  backend->NormParts(norm, rows, of_row, config.layer_count(), width, inputs);
  Embed(weights.table, tokens, of_row, backend, rows_.as<float>());
  backend->Scale(std::sqrt(static_cast<float>(width)), all, rows_.as<float>());
  backend->Add(rows_.as<float>(), all, inputs);
  backend->Scale(1 / std::numbers::sqrt2_v<float>, all, inputs);
}

const float* LayerInputs::Gate(const ModelConfig& config, const LinearWeights& gate,
                               Activation activation, int layer, const float* hidden, int rows,
                               Backend* backend) {
  const int width = config.layer_input;
  float* const gates = gates_.as<float>();
  Multiply(gate, hidden, rows, backend, gates);
  const float* inputs = inputs_.as<float>() + std::ptrdiff_t{layer} * width;
  LayGatesBeside(gates, inputs, std::ptrdiff_t{width} * config.layer_count(), rows, width,
                 gate_up_.as<float>());
  backend->GatedMul(activation, gate_up_.as<float>(), rows, width, gates);
  return gates;
}

}  // namespace foretoken
