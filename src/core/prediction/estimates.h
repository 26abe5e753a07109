#pragma once

#include <array>
#include <cmath>

#include "core/prediction/cost_model.h"

namespace foretoken {

/// A weighted sum of samples whose weights decay.
struct DecayingSum {
  double sum = 0;
  double weight = 0;  ///< Samples seen, as far as they have not decayed.

  void Add(double sample, double sample_weight = 1) {
    sum += sample_weight * sample;
    weight += sample_weight;
  }
  void Decay(double keep) {
    sum *= keep;
    weight *= keep;
  }
  /// The samples' mean, where `prior` counts as `prior_weight` samples more. It does not decay:
  /// what is no longer observed drifts back to it, which is how a mode that once did badly comes to
  /// be tried again.
  double MeanWith(double prior, double prior_weight) const {
    return (prior * prior_weight + sum) / (prior_weight + weight);
  }
};

/// Several such sums that decay together, in constant time.
template <std::size_t N>
class DecayingSums {
 public:
  void Add(std::size_t index, double sample) { sums_[index].Add(sample, unit_); }
  void Decay(double keep) {
    unit_ /= keep;  // In place of making all the others less, what is to come counts more.
    if (unit_ < kLargest) return;
    for (DecayingSum& sum : sums_) sum.Decay(1 / unit_);
    unit_ = 1;
  }
  DecayingSum operator[](std::size_t index) const { return InUnits(sums_[index]); }
  DecayingSum Total() const {
    DecayingSum total;
    for (const DecayingSum& part : sums_) {
      total.sum += part.sum;
      total.weight += part.weight;
    }
    return InUnits(total);
  }

 private:
  static constexpr double kLargest = 1e12;
  DecayingSum InUnits(DecayingSum sum) const { return {sum.sum / unit_, sum.weight / unit_}; }

  std::array<DecayingSum, N> sums_{};
  double unit_ = 1;  // What a sample counts now.
};

/// A mean learned from samples whose weights decay, and the prior that it begins with.
class DecayingMean {
 public:
  DecayingMean(double prior, double prior_weight) : prior_(prior), prior_weight_(prior_weight) {}

  void Add(double sample, double weight = 1) { samples_.Add(sample, weight); }
  void Decay(double keep) { samples_.Decay(keep); }
  double value() const { return samples_.MeanWith(prior_, prior_weight_); }
  /// The standard deviation that the samples leave, given the prior's.
  double doubt(double of_prior) const {
    return of_prior * std::sqrt(prior_weight_ / (prior_weight_ + samples_.weight));
  }

 private:
  double prior_;
  double prior_weight_;
  DecayingSum samples_;
};

/// Acceptance per position of one kind of proposal, over all sequences. A position that is rarely
/// reached leans on the one before it.
class AcceptanceEstimate {
 public:
  explicit AcceptanceEstimate(double prior) : prior_(prior) {}

  /// Adds a path of `proposed` tokens of which the first `accepted` were accepted.
  void Add(int proposed, int accepted);
  void Decay(double keep) { accepted_.Decay(keep); }

  /// Mean over all positions seen.
  double mean() const;
  /// The curve, every value multiplied by `tilt` (a sequence's own deviation).
  StaticVector<double, ProposerModel::kMaxPositions> Curve(double tilt) const;
  /// The standard deviation that the trials seen leave to the mean.
  double doubt() const;

 private:
  double prior_;
  DecayingSums<ProposerModel::kMaxPositions> accepted_;  // By position.
};

/// The miss rate of the speculation cache at one kind of node: a power law whose c follows what is
/// observed at whatever fan-outs were used.
class HitEstimate {
 public:
  explicit HitEstimate(PowerLaw prior) : prior_(prior) {}

  void Add(int fanout, bool hit);
  void Decay(double keep) { misses_.Decay(keep); }
  /// Believed, or so many standard deviations better.
  HitCurve Curve(double optimism = 0) const;

 private:
  PowerLaw prior_;
  DecayingSum misses_;  // Weighed by how many the prior expected.
};

/// By how much passes take longer than expected, by the row counts of a table: a count that was
/// rarely seen leans on the mean of all, and that on a prior.
class RowRatios {
 public:
  static constexpr int kMaxPoints = TimeTable::kMaxRowPoints;

  /// `prior` counts as `prior_weight` samples; `rows` as those of a TimeTable.
  RowRatios(const StaticVector<int, kMaxPoints>& rows, double prior, double prior_weight)
      : rows_(rows), mean_(prior, prior_weight) {}

  void Add(double rows, double ratio);
  void Decay(double keep);
  double At(double rows) const { return AtPoint(Nearest(rows)); }
  /// The ratios of every row count. `optimism` is taken off those that were not seen, less off
  /// others.
  StaticVector<double, kMaxPoints> All(double optimism = 0) const;
  /// The mean of all row counts.
  const DecayingMean& mean() const { return mean_; }

 private:
  std::size_t Nearest(double rows) const;
  double AtPoint(std::size_t point) const;

  StaticVector<int, kMaxPoints> rows_;
  DecayingSums<kMaxPoints> ratios_;
  DecayingMean mean_;
};

/// Times of a model's passes about which nothing was measured before: a line through those of
/// recent passes.
class LineEstimate {
 public:
  void Add(double rows, double us);
  /// The time expected of a pass. Rows count as free until passes of different ones were seen.
  double us(double rows) const { return base_us_ + per_row_us_ * rows; }

 private:
  // Decaying sums over the passes.
  double weight_ = 0;
  double rows_ = 0;
  double us_ = 0;
  double rows_rows_ = 0;
  double rows_us_ = 0;
  double base_us_ = 1;
  double per_row_us_ = 0;
};

/// Times of a model's passes: a measured table, corrected as passes are seen.
class TimeEstimate {
 public:
  explicit TimeEstimate(const TimeTable& measured);

  /// A pass over `rows` rows took `us`. One that took more than thrice as long as expected was
  /// held up by something else and counts as thrice.
  void Add(double rows, double context, double us);
  void Decay(double keep) { ratios_.Decay(keep); }
  /// The time expected of a pass.
  double us(double rows, double context) const;
  TimeTable Table() const;

 private:
  TimeTable measured_;
  RowRatios ratios_;  // The ratios of seen to expected times.
};

}  // namespace foretoken
