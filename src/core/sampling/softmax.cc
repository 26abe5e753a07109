#include "core/sampling/softmax.h"

#include <algorithm>
#include <array>

namespace foretoken {
namespace {

constexpr int kLanes = 16;
constexpr int kStrip = 256;  // Weights at a time: a loop of its own, which compilers vectorise.

}  // namespace

float MaxLogit(const float* logits, int count) {
  std::array<float, kLanes> lanes;
  lanes.fill(kMinusInfinity);
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = logits[i + lane] > lanes[lane] ? logits[i + lane] : lanes[lane];
    }
  }
  for (; i < count; ++i) lanes[0] = logits[i] > lanes[0] ? logits[i] : lanes[0];
  return *std::ranges::max_element(lanes);
}

double SumWeights(const float* logits, int count, float max, float temperature) {
  double sum = 0;
  std::array<float, kStrip> weights;
  for (int begin = 0; begin < count; begin += kStrip) {
    const int width = std::min(kStrip, count - begin);
    WriteWeights(logits + begin, width, max, temperature, weights.data());
    std::fill(weights.begin() + width, weights.end(), 0.0F);
    for (int half = kStrip / 2; half >= kLanes; half /= 2) {
      for (int i = 0; i < half; ++i) weights[i] += weights[half + i];
    }
    for (int lane = 0; lane < kLanes; ++lane) sum += weights[lane];
  }
  return sum;
}

void WriteWeights(const float* logits, int count, float max, float temperature, float* weights) {
  for (int i = 0; i < count; ++i) {
    weights[i] = logits[i] > kMinusInfinity ? Weight(logits[i], max, temperature) : 0.0F;
  }
}

double Sum(std::span<const float> values) {
  std::array<double, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += values[i + lane];
  }
  for (; i < values.size(); ++i) lanes[0] += values[i];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

void TakeLogs(std::span<float> values) {
  for (float& value : values) value = Log(value);
}

}  // namespace foretoken
