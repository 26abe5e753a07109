#include "core/prediction/hit_curve.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace foretoken {
namespace {

// The closest (in squares) sequence that never rises: neighbours in the wrong order are pooled.
void PoolRises(std::array<double, kMaxFanout>* gains) {
  struct Pool {
    double mean = 0;
    int size = 0;
  };
  std::array<Pool, kMaxFanout> pools;
  int count = 0;
  for (const double gain : *gains) {
    Pool pool{gain, 1};
    while (count > 0 && pools[count - 1].mean < pool.mean) {
      const Pool& last = pools[--count];
      const int size = last.size + pool.size;
      pool = {(last.mean * last.size + pool.mean * pool.size) / size, size};
    }
    pools[count++] = pool;
  }
  auto gain = gains->begin();
  for (int i = 0; i < count; ++i) gain = std::fill_n(gain, pools[i].size, pools[i].mean);
}

}  // namespace

double PowerLaw::Miss(double fanout) const {
  return std::clamp(c * std::pow(fanout, -r), 0.0, 1.0);
}

PowerLaw FitPowerLaw(std::span<const double> hit) {
  double weights = 0;
  double mean_x = 0;
  double mean_y = 0;
  for (std::size_t i = 0; i < hit.size(); ++i) {
    const double miss = 1 - hit[i];
    if (miss <= 0) continue;
    weights += miss;
    mean_x += miss * std::log(double(i + 1));
    mean_y += miss * std::log(miss);
  }
  if (weights == 0) return {.c = 0, .r = 0};
  mean_x /= weights;
  mean_y /= weights;
  double variance = 0;
  double covariance = 0;
  for (std::size_t i = 0; i < hit.size(); ++i) {
    const double miss = 1 - hit[i];
    if (miss <= 0) continue;
    const double x = std::log(double(i + 1)) - mean_x;
    variance += miss * x * x;
    covariance += miss * x * (std::log(miss) - mean_y);
  }
  const double r = variance > 0 ? std::max(0.0, -covariance / variance) : 0;
  return {.c = std::exp(mean_y + r * mean_x), .r = r};
}

HitCurve::HitCurve(const std::array<double, kMaxFanout>& hit) {
  std::array<double, kMaxFanout> gains;
  std::adjacent_difference(hit.begin(), hit.end(), gains.begin());
  PoolRises(&gains);
  for (int fanout = 1; fanout <= kMaxFanout; ++fanout) {
    hit_[fanout] = std::min(1.0, hit_[fanout - 1] + std::max(0.0, gains[fanout - 1]));
  }
}

HitCurve HitCurve::FromPowerLaw(const PowerLaw& law) {
  std::array<double, kMaxFanout> hit;
  for (int fanout = 1; fanout <= kMaxFanout; ++fanout) hit[fanout - 1] = 1 - law.Miss(fanout);
  return HitCurve(hit);
}

HitCurve HitCurve::FromMeasured(std::span<const double> hit) {
  FT_CHECK(hit.size() <= kMaxFanout, "{} points", hit.size());
  if (hit.empty()) return {};
  const double r = FitPowerLaw(hit).r;
  std::array<double, kMaxFanout> all;
  std::ranges::copy(hit, all.begin());
  for (std::size_t i = hit.size(); i < all.size(); ++i) {
    // The power law gives the shape beyond the last point, the last point its height.
    const double beyond = std::pow(double(i + 1) / double(hit.size()), -r);
    all[i] = 1 - (1 - hit.back()) * beyond;
  }
  return HitCurve(all);
}

}  // namespace foretoken
