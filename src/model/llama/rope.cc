#include "model/llama/rope.h"

#include <numbers>

#include "base/portable_math.h"

namespace foretoken {
namespace {

// Llama 3: long waves are slowed by `factor`, short ones kept, those between are blended linearly
// in the number of turns that they make within the original context.
double ScaleLlama3(double frequency, const RopeScaling& scaling) {
  const double turns =
      static_cast<double>(scaling.original_positions) * frequency / (2 * std::numbers::pi);
  if (turns < scaling.low_frequency_factor) return frequency / scaling.factor;
  if (turns > scaling.high_frequency_factor) return frequency;
  const double kept = (turns - scaling.low_frequency_factor) /
                      (scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1 - kept) * frequency / scaling.factor + kept * frequency;
}

}  // namespace

std::vector<double> RopeFrequencies(const ModelConfig& config) {
  std::vector<double> frequencies;
  for (int i = 0; i < config.head_dim / 2; ++i) {
    double frequency = PortableExp(-2.0 * i / config.head_dim * PortableLog(config.rope_theta));
    const RopeScaling& scaling = config.rope_scaling;
    if (scaling.kind == RopeScaling::Kind::kLinear) frequency /= scaling.factor;
    if (scaling.kind == RopeScaling::Kind::kLlama3) frequency = ScaleLlama3(frequency, scaling);
    if (scaling.kind == RopeScaling::Kind::kFactors) frequency /= scaling.factors[i];
    frequencies.push_back(frequency);
  }
  return frequencies;
}

RopeTable MakeRopeTable(const ModelConfig& config) {
  const std::vector<double> frequencies = RopeFrequencies(config);
  RopeTable table{config.head_dim, config.max_positions, {}, {}};
  const std::size_t bytes = frequencies.size() * config.max_positions * sizeof(float);
  table.cos = Buffer(bytes);
  table.sin = Buffer(bytes);
  float* cos = table.cos.as<float>();
  float* sin = table.sin.as<float>();
  for (std::int64_t position = 0; position < table.positions; ++position) {
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(position) * frequency;
      const SinCos turned = PortableSinCos(angle);
      *cos++ = static_cast<float>(turned.cos);
      *sin++ = static_cast<float>(turned.sin);
    }
  }
  return table;
}

}  // namespace foretoken
