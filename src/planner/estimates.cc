#include "planner/estimates.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr double kPriorTrials = 6;
constexpr double kMostAcceptance = 0.999;
constexpr double kPriorMisses = 4;
constexpr double kOutlier = 3;
// A row count's own ratio counts fully beside the mean of all from about this many samples on.
constexpr double kRatioPrior = 4;

}  // namespace

void AcceptanceEstimate::Add(int proposed, int accepted) {
  const int last = std::min({proposed, accepted + 1, ProposerModel::kMaxPositions});
  for (int k = 0; k < last; ++k) accepted_.Add(k, k < accepted ? 1 : 0);
}

void AcceptanceEstimate::Fade(double keep) { accepted_.Fade(keep); }

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
  return std::sqrt(p * (1 - p) / (kPriorTrials + trials()));
}

void HitEstimate::Add(int fanout, bool hit) {
  if (fanout == 0) return;  // Nothing was prepared there, so nothing is learned.
  misses_.weight += prior_.Miss(fanout);
  misses_.sum += hit ? 0 : 1;
}

void HitEstimate::Fade(double keep) { misses_.Fade(keep); }

HitCurve HitEstimate::Curve(double optimism) const {
  PowerLaw law = prior_;
  const double mean = misses_.MeanWith(1, kPriorMisses);
  // Misses as of a Poisson law.
  const double doubt = std::sqrt(mean / (kPriorMisses + misses_.weight));
  law.c *= std::max(0.0, mean - optimism * doubt);
  return HitCurve::FromPowerLaw(law);
}

// By ratio. Without divisions: this is asked several times a round, which may take 50 us.
std::size_t TimeEstimate::Nearest(double rows) const {
  const auto& points = measured_.rows();
  FT_CHECK(!points.empty());
  std::size_t nearest = 0;
  while (nearest + 1 < points.size() &&
         rows * rows > static_cast<double>(points[nearest]) * points[nearest + 1]) {
    ++nearest;
  }
  return nearest;
}

void TimeEstimate::Add(double rows, double context, double us) {
  const std::size_t nearest = Nearest(rows);
  const double expected = measured_.us(rows, context);
  if (expected > 0) ratios_.Add(nearest, std::min(us / expected, kOutlier));
}

void TimeEstimate::Fade(double keep) { ratios_.Fade(keep); }

double TimeEstimate::Correction(std::size_t point) const {
  return ratios_[point].MeanWith(ratios_.Total().MeanWith(1, kRatioPrior), kRatioPrior);
}

double TimeEstimate::us(double rows, double context) const {
  return Correction(Nearest(rows)) * measured_.us(rows, context);
}

TimeTable TimeEstimate::Table() const {
  const auto& rows = measured_.rows();
  const auto& contexts = measured_.contexts();
  std::array<double, TimeTable::kMaxRowPoints * TimeTable::kMaxContextPoints> us{};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double own = Correction(i);
    for (std::size_t j = 0; j < contexts.size(); ++j) {
      us[i * contexts.size() + j] = own * measured_.us(rows[i], contexts[j]);
    }
  }
  const auto table =
      TimeTable::Make(rows, contexts, std::span(us).first(rows.size() * contexts.size()));
  FT_CHECK(table.ok(), "{}", table.ok() ? "" : table.error().message);
  return *table;
}

}  // namespace foretoken
