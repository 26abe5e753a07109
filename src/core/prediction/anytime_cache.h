#pragma once

#include "base/static_vector.h"
#include "core/prediction/cost_model.h"
#include "core/prediction/fanout_solver.h"
#include "core/speculation/plan.h"

namespace foretoken {

/// What a speculation cache that grows while the target verifies is worth when the outcome arrives.
struct CacheForecast {
  /// [n]: P(the outcome is prepared, with a chain of n tokens); [0]: P(cache miss).
  StaticVector<double, kMaxProposal + 1> chain;

  double hit() const { return 1 - chain[0]; }
};

/// The cache's situation at the start of a verification.
struct CacheRace {
  const CostModel* model = nullptr;
  int batch = 1;       ///< Sequences that share the speculator and are all in this situation.
  double context = 0;  ///< Tokens that draft rows attend to.
  double us = 0;       ///< Until the outcome is known.
  int lookahead = 0;   ///< K: where branches end.
  int trunk_rows = 1;  ///< Rows of the proposal that the draft has not computed yet.
  bool ranked = true;  ///< The nodes before the proposal's last have been ranked already.
};

/// Plays the speculator's passes (docs/understand/ssd.md) against the clock. The outcome node
/// follows `nodes`, the bonus token `curves`; `shape` has one fan-out for each node. A pass takes
/// the branches that are worth most for its time, all others wait; what is complete when the time
/// is up, counts. One pass in the balance counts in part, since passes do not all take the same
/// time.
CacheForecast ForecastCache(const CacheRace& race, const FanoutShape& shape,
                            const NodeDistribution& nodes, const HitCurves& curves);

}  // namespace foretoken
