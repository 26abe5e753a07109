#include "base/numbers/integers.h"
#include "core/model/decoder/mixers.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/model/decoder/float_buffer.h"

namespace foretoken {

void ExpertMixer::GrowTo(std::size_t rows, const ModelConfig& config) {
  std::size_t experts = 0;
  std::size_t chosen = 0;
  std::size_t width = 0;  // The width of all that a row chooses, or of what all rows share.
  for (const LayerSpec& layer : config.layers) {
    const MlpSpec& mlp = layer.mlp;
    if (!mlp.has_experts()) continue;
    experts = std::max(experts, Size(mlp.routing.experts));
    chosen = std::max(chosen, Size(mlp.routing.chosen));
    width = std::max(
        {width, Size(mlp.shared_intermediate), Size(mlp.routing.chosen) * Size(mlp.intermediate)});
  }
  if (experts == 0) return;
  const std::size_t hidden = config.hidden;
  if (experts_.size() < rows * chosen) {
    experts_.resize(rows * chosen);
    places_.resize(rows * chosen);
  }
  if (ends_.size() < experts) ends_.resize(experts);
  groups_.reserve(experts);
  GrowFloats(scores_, rows * experts);
  GrowFloats(weights_, rows * chosen);
  GrowFloats(inputs_, rows * chosen * hidden);
  GrowFloats(gate_up_, rows * width * 2);
  GrowFloats(mixed_, rows * width);
  GrowFloats(made_, rows * chosen * hidden);
  GrowFloats(sums_, rows * hidden);
}

// Counts what each expert has, then gives every choice its place.
void ExpertMixer::OrderByExpert(const Routing& routing, int rows) {
  const std::ptrdiff_t choices = std::ptrdiff_t{rows} * routing.chosen;
  const auto ends = std::span(ends_).first(routing.experts);
  std::ranges::fill(ends, 0);
  for (std::ptrdiff_t i = 0; i < choices; ++i) {
    ++ends[experts_[i]];
  }
  groups_.clear();
  int begin = 0;
  for (int expert = 0; expert < routing.experts; ++expert) {
    std::int32_t& end = ends[expert];
    if (end > 0) groups_.push_back({expert, begin, begin + end});
    end = std::exchange(begin, begin + end);
  }
  for (std::ptrdiff_t i = 0; i < choices; ++i) {
    const std::size_t choice = i;
    places_[choice] = ends[experts_[choice]]++;
  }
}

// The experts of rows, what they weigh, and their order.
void ExpertMixer::Choose(const MlpSpec& mlp, const LayerWeights& layer, const float* x, int rows,
                         Backend* backend) {
  float* const weights = weights_.as<float>();
  Multiply(layer.router, x, rows, backend, scores_.as<float>());
  const float* choice_bias = mlp.choice_bias ? layer.choice_bias.as<float>() : nullptr;
  backend->Route(mlp.routing, scores_.as<float>(), choice_bias, rows, experts_.data(), weights);
  for (int i = 0; mlp.apart && i < rows * mlp.routing.chosen; ++i) {
    weights[i] *= layer.expert_factors.as<float>()[experts_[i]];
  }
  OrderByExpert(mlp.routing, rows);
}

void ExpertMixer::AddShared(const MlpSpec& mlp, const LayerWeights& layer, const float* x,
                            float epsilon, int rows, Backend* backend) {
  const int hidden = layer.shared_down.matrix.outputs;
  float* const made = made_.as<float>();
  Multiply(layer.shared_gate_up, x, rows, backend, gate_up_.as<float>());
  backend->GatedMul(mlp.activation, gate_up_.as<float>(), rows, mlp.shared_intermediate,
                    mixed_.as<float>());
  Multiply(layer.shared_down, mixed_.as<float>(), rows, backend, made);
  if (mlp.apart) {
    backend->RmsNorm(made, layer.shared_post_norm.gain.as<float>(), epsilon, rows, hidden, made);
  }
  if (!mlp.shared_gate) {
    return backend->Add(made, std::int64_t{rows} * hidden, sums_.as<float>());
  }
  Multiply(layer.shared_gate, x, rows, backend, scores_.as<float>());
  backend->AddGatedRows(scores_.as<float>(), made, rows, hidden, sums_.as<float>());
}

float* ExpertMixer::Mix(const MlpSpec& mlp, const LayerWeights& layer, const ExpertInputs& x,
                        float epsilon, int rows, Backend* backend) {
  const Routing& routing = mlp.routing;
  const auto hidden = static_cast<std::ptrdiff_t>(layer.down.matrix.outputs);
  const int choices = rows * routing.chosen;
  float* const inputs = inputs_.as<float>();
  float* const gate_up = gate_up_.as<float>();
  Choose(mlp, layer, x.router, rows, backend);
  for (int i = 0; i < choices; ++i) {
    std::copy_n(x.experts + i / routing.chosen * hidden, hidden, inputs + places_[i] * hidden);
  }
  const auto multiply = [&](const LinearWeights& stack, const float* from, float* to) {
    const float* bias = stack.bias.bytes() == 0 ? nullptr : stack.bias.as<float>();
    backend->MatMulGroups(stack.matrix, groups_, bias, from, to);
  };
  multiply(layer.gate_up, inputs, gate_up);
  backend->GatedMul(mlp.activation, gate_up, choices, mlp.intermediate, mixed_.as<float>());
  multiply(layer.down, mixed_.as<float>(), made_.as<float>());
  backend->WeightedSums(made_.as<float>(), places_.data(), weights_.as<float>(), rows,
                        routing.chosen, static_cast<int>(hidden), sums_.as<float>());
  if (mlp.apart) {
    backend->RmsNorm(sums_.as<float>(), layer.experts_post_norm.gain.as<float>(), epsilon, rows,
                     static_cast<int>(hidden), sums_.as<float>());
  }
  if (mlp.has_shared()) AddShared(mlp, layer, x.shared, epsilon, rows, backend);
  return sums_.as<float>();
}

}  // namespace foretoken
