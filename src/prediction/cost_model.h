#pragma once

#include <array>
#include <span>

#include "base/result.h"
#include "base/static_vector.h"
#include "prediction/branch_rows.h"
#include "prediction/hit_curve.h"
#include "speculation/plan.h"

namespace foretoken {

/// The time of a model's pass by its rows and the context they attend to: measured on a grid,
/// linear between the points, continued beyond the last one with the slope of the upper half (never
/// downwards) and constant below the first. A value of fixed size; copying is cheap enough for
/// every re-plan.
class TimeTable {
 public:
  static constexpr int kMaxRowPoints = 20;
  static constexpr int kMaxContextPoints = 8;

  /// Takes no time.
  TimeTable() = default;

  /// `us[i * contexts.size() + j]`: microseconds at rows[i] and contexts[j]; both ascend. Refuses
  /// grids that are empty, too large or out of order, and times that are not positive and finite.
  static Result<TimeTable> Make(std::span<const int> rows, std::span<const int> contexts,
                                std::span<const double> us);
  /// base_us + per_row_us * rows at every context.
  static TimeTable Line(double base_us, double per_row_us);

  /// Microseconds; means of rows and contexts need not be whole.
  double us(double rows, double context) const;
  /// The same with every row count's times multiplied by its factor.
  TimeTable Scaled(std::span<const double> by_rows) const;

  const StaticVector<int, kMaxRowPoints>& rows() const { return rows_; }
  const StaticVector<int, kMaxContextPoints>& contexts() const { return contexts_; }
  /// As Make was given them.
  std::span<const double> times() const {
    return std::span(us_).first(rows_.size() * contexts_.size());
  }

 private:
  StaticVector<int, kMaxRowPoints> rows_;
  StaticVector<int, kMaxContextPoints> contexts_;
  std::array<double, std::size_t{kMaxRowPoints} * kMaxContextPoints> us_{};  // [rows, contexts]
};

/// What one way of proposing gives.
struct ProposerModel {
  static constexpr int kMaxPositions = 16;

  /// [k]: P(token k + 1 accepted | the first k were); the last value holds beyond. Empty: not
  /// measured, so nothing is predicted with it.
  StaticVector<double, kMaxPositions> acceptance;
  double coverage = 1;   ///< P(it proposes anything at all).
  double mean_rows = 0;  ///< Rows of a proposal; 0: a chain, as many as the lookahead.
  /// Time for one sequence's proposal on the target's cores. Of the draft model on its own device:
  /// of one row, beside its pass (choosing candidates, handing them over).
  double us = 0;
  HitCurves curves;  ///< Of the speculation cache while such a proposal is verified.

  bool measured() const { return !acceptance.empty(); }
};

/// What is known about a machine, a pair of models and their traffic: everything that Predict
/// needs.
struct CostModel {
  TimeTable target;
  TimeTable draft;            ///< On the draft's own device (SSD).
  TimeTable draft_on_target;  ///< On the target's device (SD).
  double host_us = 0;         ///< Of a round, besides the passes.
  double host_row_us = 0;     ///< The same for each row: choosing its token.
  /// Each further sequence of a pass, beyond its rows, per token of its context: its keys and
  /// values are read too.
  double sequence_token_us = 0;
  /// The target's passes while the draft's device works too, by row count; empty where only
  /// target_contention is known.
  TimeTable target_beside_draft;
  /// How much slower a pass is while the other device works too (they share bandwidth); >= 1.
  double target_contention = 1;
  double draft_contention = 1;
  int draft_rows_per_pass = kBranchRowsPerPass;  ///< Of branches; 0: any number.

  /// By mode: what measured speeds were times what was predicted; 1 where nothing was compared.
  std::array<double, kModes> correction = NoCorrection();

  ProposerModel draft_model;
  ProposerModel ngram;
  ProposerModel retrieval;
  ProposerModel random;

  /// What a target pass over `sequences` sequences takes beyond the same rows of one.
  double FurtherSequencesUs(int sequences, double context) const {
    return (sequences - 1) * context * sequence_token_us;
  }

  /// What `fallback` proposes with; null for kNone and kAuto.
  const ProposerModel* proposer(Fallback fallback) const;

  static constexpr std::array<double, kModes> NoCorrection() {
    std::array<double, kModes> ones{};
    for (double& one : ones) one = 1;
    return ones;
  }
};

}  // namespace foretoken
