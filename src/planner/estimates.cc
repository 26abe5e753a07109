#include "planner/estimates.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr double kPriorTrials = 12;
constexpr double kMostAcceptance = 0.999;
constexpr double kPriorMisses = 4;
constexpr double kOutlier = 3;
// A row count's own ratio counts fully beside the mean of all from about this many samples on.
constexpr double kRatioPrior = 4;

}  // namespace

void AcceptanceEstimate::Add(int proposed, int accepted) {
  const int last = std::min({proposed, accepted + 1, ProposerModel::kMaxPositions});
  for (int k = 0; k < last; ++k) {
    positions_[k].trials += 1;
    positions_[k].accepted += k < accepted ? 1 : 0;
  }
}

void AcceptanceEstimate::Fade(double keep) {
  for (Position& position : positions_) {
    position.trials *= keep;
    position.accepted *= keep;
  }
}

double AcceptanceEstimate::trials() const {
  double trials = 0;
  for (const Position& position : positions_) trials += position.trials;
  return trials;
}

double AcceptanceEstimate::mean() const {
  double accepted = prior_ * kPriorTrials;
  for (const Position& position : positions_) accepted += position.accepted;
  return accepted / (kPriorTrials + trials());
}

StaticVector<double, ProposerModel::kMaxPositions> AcceptanceEstimate::Curve(double tilt) const {
  StaticVector<double, ProposerModel::kMaxPositions> curve;
  double value = mean();
  for (const Position& position : positions_) {
    value = (kPriorTrials * value + position.accepted) / (kPriorTrials + position.trials);
    curve.push_back(std::clamp(value * tilt, 0.0, kMostAcceptance));
  }
  return curve;
}

void HitEstimate::Add(int fanout, bool hit) {
  if (fanout == 0) return;  // Nothing was prepared there, so nothing is learned.
  expected_misses_ += prior_.Miss(fanout);
  misses_ += hit ? 0 : 1;
}

void HitEstimate::Fade(double keep) {
  expected_misses_ *= keep;
  misses_ *= keep;
}

HitCurve HitEstimate::Curve() const {
  PowerLaw law = prior_;
  law.c *= (kPriorMisses + misses_) / (kPriorMisses + expected_misses_);
  return HitCurve::FromPowerLaw(law);
}

void TimeEstimate::Add(double rows, double context, double us) {
  FT_CHECK(!measured_.rows().empty());
  const double expected = measured_.us(rows, context);
  if (expected <= 0) return;
  std::size_t nearest = 0;
  const auto distance = [&](std::size_t i) {
    return std::abs(std::log(rows / measured_.rows()[i]));
  };
  for (std::size_t i = 1; i < measured_.rows().size(); ++i) {
    if (distance(i) < distance(nearest)) nearest = i;
  }
  ratios_[nearest].sum += std::min(us / expected, kOutlier);
  ratios_[nearest].weight += 1;
}

void TimeEstimate::Fade(double keep) {
  for (Ratio& ratio : ratios_) {
    ratio.sum *= keep;
    ratio.weight *= keep;
  }
}

double TimeEstimate::samples() const {
  double samples = 0;
  for (const Ratio& ratio : ratios_) samples += ratio.weight;
  return samples;
}

TimeTable TimeEstimate::Table() const {
  double sum = kRatioPrior;
  for (const Ratio& ratio : ratios_) sum += ratio.sum;
  const double mean = sum / (kRatioPrior + samples());
  const auto& rows = measured_.rows();
  const auto& contexts = measured_.contexts();
  std::array<double, TimeTable::kMaxRowPoints * TimeTable::kMaxContextPoints> us{};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double own = (kRatioPrior * mean + ratios_[i].sum) / (kRatioPrior + ratios_[i].weight);
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
