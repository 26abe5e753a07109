#pragma once

#include <span>

#include "core/prediction/estimates.h"

namespace foretoken {

/// Whether the mode's drafter can propose as many rows as are worth their price, before the pass.
constexpr bool PricesRows(Mode mode) {
  return mode.before() && InfoOf(mode.drafter).shape == ProposalShape::kPricedTree;
}

/// What a further row of a pass costs, in tokens: the time that it adds times the tokens that are
/// decoded in that time as things are. A proposal token is worth its row if its chance of being
/// accepted is no less. (Tokens over time are at their most when nothing pays at the rate that one
/// has: Dinkelbach's rule for the largest ratio of two sums.) Where a pass of many rows takes what
/// one of few takes, up to I_knee of Section 3.2 of the SSSD paper, rows are all but free.
class RowPrice {
 public:
  /// `pass_us`: passes by their rows as measured before serving, which the passes seen correct.
  /// Only ratios matter: a machine that has become slower since changes nothing.
  explicit RowPrice(const TimeTable& pass_us) : times_(pass_us), pass_us_(pass_us) {}

  /// A round in which nothing was prefilled.
  struct Seen {
    int sequences = 1;
    int rows = 1;  ///< The rows of its pass.
    /// A sequence's length, in the mean: a row that attends to more costs more.
    double context = 0;
    double tokens = 0;  ///< The tokens that all sequences emitted.
    double pass_us = 0;
    double round_us = 0;
  };
  void Observe(const Seen& round);

  /// Prices of a sequence's first, second ... proposal token where the other sequences have so many
  /// rows. Kernels work on tiles of rows, so prices come in steps and may exceed 1. As at a batch
  /// of one before anything was observed.
  void Fill(double other_rows, std::span<double> prices) const;

  /// Rows of the other sequences as of late, as a sequence sees it.
  double other_rows() const { return rounds_ > 0 ? other_rows_ / rounds_ : 0; }
  /// The context of a sequence as of late.
  double context() const { return rounds_ > 0 ? context_ / rounds_ : 0; }

 private:
  TimeEstimate times_;
  TimeTable pass_us_;  // As `times_` had it some rounds ago.
  int observed_ = 0;
  // Decaying sums.
  double rounds_ = 0;
  double other_rows_ = 0;  // The rows of the other sequences, as a sequence sees it.
  double context_ = 0;
  double tokens_ = 0;
  double in_pass_us_ = 0;
  double all_us_ = 0;
  double expected_us_ = 0;  // The expected time of the passes.
};

}  // namespace foretoken
