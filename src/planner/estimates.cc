#include "planner/estimates.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr double kPriorTrials = 12;
constexpr double kMostAcceptance = 0.999;
constexpr double kPriorMisses = 4;
constexpr double kOutlier = 3;
// A row count's own ratio counts fully beside the mean of all from about this many samples on.
constexpr double kRatioPrior = 4;

FadingSum Sum(std::span<const FadingSum> parts) {
  FadingSum total;
  for (const FadingSum& part : parts) {
    total.sum += part.sum;
    total.weight += part.weight;
  }
  return total;
}

}  // namespace

void AcceptanceEstimate::Add(int proposed, int accepted) {
  const int last = std::min({proposed, accepted + 1, ProposerModel::kMaxPositions});
  for (int k = 0; k < last; ++k) accepted_[k].Add(k < accepted ? 1 : 0);
}

void AcceptanceEstimate::Fade(double keep) {
  for (FadingSum& position : accepted_) position.Fade(keep);
}

FadingSum AcceptanceEstimate::Total() const { return Sum(accepted_); }

double AcceptanceEstimate::mean() const { return Total().MeanWith(prior_, kPriorTrials); }

StaticVector<double, ProposerModel::kMaxPositions> AcceptanceEstimate::Curve(double tilt) const {
  StaticVector<double, ProposerModel::kMaxPositions> curve;
  double value = mean();
  for (const FadingSum& position : accepted_) {
    value = position.MeanWith(value, kPriorTrials);
    curve.push_back(std::clamp(value * tilt, 0.0, kMostAcceptance));
  }
  return curve;
}

void HitEstimate::Add(int fanout, bool hit) {
  if (fanout == 0) return;  // Nothing was prepared there, so nothing is learned.
  misses_.weight += prior_.Miss(fanout);
  misses_.sum += hit ? 0 : 1;
}

void HitEstimate::Fade(double keep) { misses_.Fade(keep); }

HitCurve HitEstimate::Curve() const {
  PowerLaw law = prior_;
  law.c *= misses_.MeanWith(1, kPriorMisses);
  return HitCurve::FromPowerLaw(law);
}

std::size_t TimeEstimate::Nearest(double rows) const {
  FT_CHECK(!measured_.rows().empty());
  const auto distance = [&](int point) { return std::max(rows / point, point / rows); };
  const auto nearest = std::ranges::min_element(measured_.rows(), {}, distance);
  return static_cast<std::size_t>(nearest - measured_.rows().begin());
}

void TimeEstimate::Add(double rows, double context, double us) {
  const std::size_t nearest = Nearest(rows);
  const double expected = measured_.us(rows, context);
  if (expected > 0) ratios_[nearest].Add(std::min(us / expected, kOutlier));
}

void TimeEstimate::Fade(double keep) {
  for (FadingSum& ratio : ratios_) ratio.Fade(keep);
}

FadingSum TimeEstimate::Total() const { return Sum(ratios_); }

double TimeEstimate::Correction(std::size_t point) const {
  return ratios_[point].MeanWith(Total().MeanWith(1, kRatioPrior), kRatioPrior);
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
