#pragma once

#include <limits>

#include "core/prediction/cost_model.h"
#include "core/speculation/plan.h"

namespace foretoken {

/// What is decoded.
struct Workload {
  int batch = 1;         ///< Sequences that decode together.
  double context = 256;  ///< Their mean length in tokens.
  /// The tokens that a sequence may yet emit, in the mean. Predictions, which are of steady rates,
  /// do not ask; whether changing a plan pays does.
  double tokens_left = std::numeric_limits<double>::infinity();
};

/// What a plan is expected to do. Rates are per round of one sequence.
struct Prediction {
  double tokens_per_second = 0;  ///< The rate of the whole batch.
  double tokens_per_round = 1;
  double round_us = 0;      ///< From the start of one target pass to the next.
  double wait_us = 0;       ///< The part of `round_us` in which the target waits for a proposal.
  double target_rows = 1;   ///< Rows of one sequence in a target pass.
  double hit_rate = 0;      ///< p_hit; SSD only, like the next two.
  double hit_primary = 0;   ///< p_hit,p: after a proposal from the cache.
  double hit_fallback = 0;  ///< p_hit,b: after a fallback's proposal, or none.
};

/// Whether `model` has what Predict needs for this plan: its passes' times, its proposers measured,
/// a mode and a fallback that are concrete, and chains (trees are not modelled).
bool CanPredict(const CostModel& model, const SpeculationPlan& plan);

/// The expected speed of `plan`; needs CanPredict.
///
/// AR: one row a sequence. SD: K draft passes on the target's device, then the target's pass. ngram
/// and sssd: the same with their proposer's time. SSD: the state of a sequence is what it is
/// verifying, a chain of 0 .. K tokens from the cache or a fallback's proposal. A pass with that
/// many rows takes target(rows, context); in that time ForecastCache says which branches become how
/// long; the outcome picks the next state, and the stationary distribution of that walk weighs
/// tokens and times (equation (1), generalised to proposals of different lengths). A slow draft
/// thus gives shorter proposals; only a just-in-time fallback adds waiting, and only in rounds in
/// which every sequence of the batch missed. Sequences of a batch share passes and are independent
/// otherwise.
///
/// Allocates nothing; takes microseconds (AR, SD) to tens of microseconds (SSD).
Prediction Predict(const CostModel& model, const SpeculationPlan& plan, const Workload& load);

}  // namespace foretoken
