#include "sampling/softmax.h"

#include <algorithm>
#include <array>
#include <limits>

namespace foretoken {
namespace {

constexpr int kLanes = 16;
constexpr int kStrip = 256;  // Weights at a time: a loop of its own, which compilers vectorise.

}  // namespace

float MaxLogit(const float* logits, int count) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
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
    for (int i = 0; i < width; ++i) weights[i] = Weight(logits[begin + i], max, temperature);
    std::fill(weights.begin() + width, weights.end(), 0.0F);
    for (int half = kStrip / 2; half >= kLanes; half /= 2) {
      for (int i = 0; i < half; ++i) weights[i] += weights[half + i];
    }
    for (int lane = 0; lane < kLanes; ++lane) sum += weights[lane];
  }
  return sum;
}

}  // namespace foretoken
