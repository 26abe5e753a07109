#include "core/prediction/estimates.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr double kPriorTrials = 6;
constexpr double kMostAcceptance = 0.999;
constexpr double kPriorMisses = 4;
constexpr double kOutlier = 3;
// A row count's own ratio counts fully beside the mean of all from about this many samples on.
constexpr double kRatioPrior = 4;
constexpr double kKeepLine = 0.99;
// Below this spread of row counts the slope of a line is noise, and rows count as free: taking them
// all is then also how the slope becomes known.
constexpr double kLeastVariance = 1.0;

}  // namespace

void AcceptanceEstimate::Add(int proposed, int accepted) {
  const int last = std::min({proposed, accepted + 1, ProposerModel::kMaxPositions});
  for (int k = 0; k < last; ++k) accepted_.Add(k, k < accepted ? 1 : 0);
}

double AcceptanceEstimate::mean() const { return accepted_.Total().MeanWith(prior_, kPriorTrials); }

StaticVector<double, ProposerModel::kMaxPositions> AcceptanceEstimate::Curve(double tilt) const {
  StaticVector<double, ProposerModel::kMaxPositions> curve;
  double value = mean();
  for (std::size_t k = 0; k < ProposerModel::kMaxPositions; ++k) {
    value = accepted_[k].MeanWith(value, kPriorTrials);
    curve.push_back(std::clamp(value * tilt, 0.0, kMostAcceptance));
  }
  return curve;
}

double AcceptanceEstimate::doubt() const {
  const double p = mean();
  return std::sqrt(p * (1 - p) / (kPriorTrials + accepted_.Total().weight));
}

void HitEstimate::Add(int fanout, bool hit) {
  if (fanout == 0) return;  // Nothing was prepared there, so nothing is learned.
  misses_.weight += prior_.Miss(fanout);
  misses_.sum += hit ? 0 : 1;
}

HitCurve HitEstimate::Curve(double optimism) const {
  PowerLaw law = prior_;
  const double mean = misses_.MeanWith(1, kPriorMisses);
  // Misses as of a Poisson distribution.
  const double doubt = std::sqrt(mean / (kPriorMisses + misses_.weight));
  law.c *= std::max(0.0, mean - optimism * doubt);
  return HitCurve::FromPowerLaw(law);
}

// By ratio. Without divisions: this is asked several times a round, which may take 50 us.
std::size_t RowRatios::Nearest(double rows) const {
  FT_CHECK(!rows_.empty());
  std::size_t nearest = 0;
  while (nearest + 1 < rows_.size() &&
         rows * rows > static_cast<double>(rows_[nearest]) * rows_[nearest + 1]) {
    ++nearest;
  }
  return nearest;
}

void RowRatios::Add(double rows, double ratio) {
  ratios_.Add(Nearest(rows), ratio);
  mean_.Add(ratio);
}

void RowRatios::Decay(double keep) {
  ratios_.Decay(keep);
  mean_.Decay(keep);
}

double RowRatios::AtPoint(std::size_t point) const {
  return ratios_[point].MeanWith(mean_.value(), kRatioPrior);
}

StaticVector<double, RowRatios::kMaxPoints> RowRatios::All(double optimism) const {
  StaticVector<double, kMaxPoints> all;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const double doubt = std::sqrt(kRatioPrior / (kRatioPrior + ratios_[i].weight));
    all.push_back(AtPoint(i) - optimism * doubt);
  }
  return all;
}

void LineEstimate::Add(double rows, double us) {
  for (double* sum : {&weight_, &rows_, &us_, &rows_rows_, &rows_us_}) *sum *= kKeepLine;
  weight_ += 1;
  rows_ += rows;
  us_ += us;
  rows_rows_ += rows * rows;
  rows_us_ += rows * us;
  const double mean_rows = rows_ / weight_;
  const double mean_us = us_ / weight_;
  const double variance = rows_rows_ / weight_ - mean_rows * mean_rows;
  const double covariance = rows_us_ / weight_ - mean_rows * mean_us;
  per_row_us_ = variance < kLeastVariance ? 0 : std::max(0.0, covariance / variance);
  // A pass never costs less than a tenth of the mean before its first row: keeps the fit sane
  // where it would extrapolate below zero.
  base_us_ = std::max(mean_us - per_row_us_ * mean_rows, 0.1 * mean_us);
}

TimeEstimate::TimeEstimate(const TimeTable& measured)
    : measured_(measured), ratios_(measured.rows(), 1, kRatioPrior) {}

void TimeEstimate::Add(double rows, double context, double us) {
  const double expected = measured_.us(rows, context);
  if (expected > 0) ratios_.Add(rows, std::min(us / expected, kOutlier));
}

double TimeEstimate::us(double rows, double context) const {
  return ratios_.At(rows) * measured_.us(rows, context);
}

TimeTable TimeEstimate::Table() const { return measured_.Scaled(ratios_.All()); }

}  // namespace foretoken
