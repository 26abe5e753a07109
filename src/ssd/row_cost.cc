#include "ssd/row_cost.h"

#include <algorithm>

namespace foretoken {
namespace {

constexpr double kDecay = 0.99;
// Below this spread of row counts the slope is noise, and rows count as free: taking them all is
// then also how the slope becomes known.
constexpr double kLeastVariance = 1.0;

}  // namespace

void RowCost::Add(int rows, std::int64_t ns) {
  const double n = rows;
  const auto t = static_cast<double>(ns);
  weight_ = kDecay * weight_ + 1;
  sum_rows_ = kDecay * sum_rows_ + n;
  sum_ns_ = kDecay * sum_ns_ + t;
  sum_rows_rows_ = kDecay * sum_rows_rows_ + n * n;
  sum_rows_ns_ = kDecay * sum_rows_ns_ + n * t;
  const double mean_rows = sum_rows_ / weight_;
  const double mean_ns = sum_ns_ / weight_;
  const double variance = sum_rows_rows_ / weight_ - mean_rows * mean_rows;
  const double covariance = sum_rows_ns_ / weight_ - mean_rows * mean_ns;
  per_row_ = variance < kLeastVariance ? 0 : std::max(0.0, covariance / variance);
  // A pass never costs less than a tenth of the mean before its first row: keeps the fit sane
  // where it would extrapolate below zero.
  base_ = std::max(mean_ns - per_row_ * mean_rows, 0.1 * mean_ns);
}

std::size_t RowCost::Choose(std::span<const double> values, int fixed) const {
  std::size_t best = 0;
  double best_rate = 0;
  double value = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    value += values[i];
    const double rate = value / (base_ + per_row_ * static_cast<double>(fixed + i + 1));
    if (rate >= best_rate) {
      best_rate = rate;
      best = i + 1;
    }
  }
  return best;
}

}  // namespace foretoken
