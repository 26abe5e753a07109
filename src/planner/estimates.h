#pragma once

#include <array>

#include "planner/cost_model.h"

namespace foretoken {

/// A mean learned from samples, begun by a prior that counts as `prior_weight` samples. Samples
/// fade, the prior does not: what is no longer observed drifts back to it, which is how a mode that
/// once did badly comes to be tried again.
class FadingMean {
 public:
  FadingMean(double prior, double prior_weight) : prior_(prior), prior_weight_(prior_weight) {}

  void Add(double sample, double weight = 1) {
    sum_ += weight * sample;
    weight_ += weight;
  }
  void Fade(double keep) {
    sum_ *= keep;
    weight_ *= keep;
  }
  double value() const { return (prior_ * prior_weight_ + sum_) / (prior_weight_ + weight_); }
  /// Samples seen and not yet faded.
  double weight() const { return weight_; }

 private:
  double prior_;
  double prior_weight_;
  double sum_ = 0;
  double weight_ = 0;
};

/// Acceptance per position of one kind of proposal, over all sequences. A position that is rarely
/// reached leans on the one before it.
class AcceptanceEstimate {
 public:
  explicit AcceptanceEstimate(double prior) : prior_(prior) {}

  /// Of `proposed` tokens along a path the first `accepted` were.
  void Add(int proposed, int accepted);
  void Fade(double keep);

  /// Mean over all positions seen.
  double mean() const;
  double trials() const;
  /// The curve, every value multiplied by `tilt` (a sequence's own deviation).
  StaticVector<double, ProposerModel::kMaxPositions> Curve(double tilt) const;

 private:
  struct Position {
    double trials = 0;
    double accepted = 0;
  };
  double prior_;
  std::array<Position, ProposerModel::kMaxPositions> positions_{};
};

/// The miss rate of the speculation cache at one kind of node: a power law whose c follows what is
/// observed at whatever fan-outs were used.
class HitEstimate {
 public:
  explicit HitEstimate(PowerLaw prior) : prior_(prior) {}

  void Add(int fanout, bool hit);
  void Fade(double keep);
  HitCurve Curve() const;

 private:
  PowerLaw prior_;
  double expected_misses_ = 0;
  double misses_ = 0;
};

/// Times of a model's passes: a measured table, corrected as passes are seen.
class TimeEstimate {
 public:
  explicit TimeEstimate(const TimeTable& measured) : measured_(measured) {}

  /// A pass over `rows` rows took `us`. One that took more than thrice as long as expected was
  /// held up by something else and counts as thrice.
  void Add(double rows, double context, double us);
  void Fade(double keep);
  double samples() const;
  TimeTable Table() const;

 private:
  struct Ratio {
    double sum = 0;
    double weight = 0;
  };
  TimeTable measured_;
  std::array<Ratio, TimeTable::kMaxRowPoints> ratios_{};
};

}  // namespace foretoken
