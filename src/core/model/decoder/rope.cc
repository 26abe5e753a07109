#include "core/model/decoder/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/numbers/portable_math.h"

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

// YaRN blends linearly in the number of the pair, between those whose waves make beta_fast and
// beta_slow turns within the original context.
class YarnBlend {
 public:
  explicit YarnBlend(const RopeSpec& rope) {
    const RopeScaling& scaling = rope.scaling;
    const auto pair_of = [&](double turns) {
      const double wave =
          static_cast<double>(scaling.original_positions) / (turns * 2 * std::numbers::pi);
      return rope.dims * PortableLog(wave) / (2 * PortableLog(rope.theta));
    };
    low_ = pair_of(scaling.beta_fast);
    high_ = pair_of(scaling.beta_slow);
    if (scaling.truncate) {
      low_ = std::floor(low_);
      high_ = std::ceil(high_);
    }
    low_ = std::max(low_, 0.0);
    high_ = std::min(high_, rope.dims - 1.0);
    if (low_ == high_) high_ += 0.001;
  }

  double Scale(int pair, double frequency, double factor) const {
    const double slowed = std::clamp((pair - low_) / (high_ - low_), 0.0, 1.0);
    return frequency / factor * slowed + frequency * (1 - slowed);
  }

 private:
  double low_;
  double high_;
};

}  // namespace

std::vector<double> RopeFrequencies(const RopeSpec& rope) {
  const RopeScaling& scaling = rope.scaling;
  std::vector<double> frequencies;
  for (int i = 0; i < rope.dims / 2; ++i) {
    const double frequency = PortableExp(-2.0 * i / rope.dims * PortableLog(rope.theta));
    switch (scaling.kind) {
      case RopeScaling::Kind::kNone:
        frequencies.push_back(frequency);
        break;
      case RopeScaling::Kind::kLinear:
        frequencies.push_back(frequency / scaling.factor);
        break;
      case RopeScaling::Kind::kLlama3:
        // By the factor that a GGUF file has of it.
        frequencies.push_back(
            frequency / double{static_cast<float>(frequency / ScaleLlama3(frequency, scaling))});
        break;
      case RopeScaling::Kind::kYarn:
        frequencies.push_back(YarnBlend(rope).Scale(i, frequency, scaling.factor));
        break;
      case RopeScaling::Kind::kFactors:
        frequencies.push_back(frequency / scaling.factors[i]);
        break;
    }
  }
  return frequencies;
}

RopeTable MakeRopeTable(const RopeSpec& rope, int positions) {
  const std::vector<double> frequencies = RopeFrequencies(rope);
  RopeTable table{rope.dims, positions, {}, {}, {}};
  const std::size_t bytes = frequencies.size() * positions * sizeof(float);
  table.cos = Buffer(bytes);
  table.sin = Buffer(bytes);
  float* cos = table.cos.as<float>();
  float* sin = table.sin.as<float>();
  for (std::int64_t position = 0; position < table.positions; ++position) {
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(position) * frequency;
      const SinCos turned = PortableSinCos(angle);
      *cos++ = static_cast<float>(turned.cos * rope.scaling.attention_factor);
      *sin++ = static_cast<float>(turned.sin * rope.scaling.attention_factor);
    }
  }
  if (rope.query_growth == 0) return table;
  table.query_scales = Buffer(positions * sizeof(float));
  for (int position = 0; position < positions; ++position) {
    const double grown = PortableLog(1.0 + position / rope.growth_step);
    table.query_scales.as<float>()[position] = static_cast<float>(1 + rope.query_growth * grown);
  }
  return table;
}

}  // namespace foretoken
