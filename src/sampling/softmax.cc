#include "sampling/softmax.h"

#include <algorithm>
#include <array>
#include <limits>

namespace foretoken {
namespace {

constexpr int kLanes = 16;

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
  std::array<double, kLanes> lanes{};
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    std::array<float, kLanes> weights;
    for (int lane = 0; lane < kLanes; ++lane) {
      weights[lane] = Weight(logits[i + lane], max, temperature);
    }
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += weights[lane];
  }
  for (; i < count; ++i) lanes[0] += Weight(logits[i], max, temperature);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace foretoken
