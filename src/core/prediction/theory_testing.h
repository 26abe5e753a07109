#pragma once

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "core/prediction/fanout_solver.h"

/// Formulas of "Speculative Speculative Decoding" (Kumar, Dao and May, 2026) that tests hold
/// predictions and simulations against, in its symbols. Times are in units of one target pass.
/// Probabilities outside [0, 1], negative times and lookaheads are programming errors.
namespace foretoken::theory {

// NOLINTBEGIN(readability-identifier-naming): the paper's symbols.

inline void CheckProbability(double p) { FT_CHECK(p >= 0 && p <= 1, "{} is not a probability", p); }

/// Tokens of a round, bonus token included: (1 - a^(K+1)) / (1 - a); K + 1 at a = 1.
inline double ExpectedTokens(double a, int K) {
  CheckProbability(a);
  FT_CHECK(K >= 0, "lookahead {}", K);
  // The sum of the series itself: its closed form cancels close to a = 1.
  double tokens = 0;
  for (int k = K; k >= 0; --k) tokens = 1 + a * tokens;
  return tokens;
}

/// What Theorem 7 and its corollaries are about.
struct SsdRound {
  double p_hit = 0;   ///< P(a round's outcome was in the speculation cache).
  double E_hit = 1;   ///< Expected tokens of a round that the primary speculator proposed for.
  double E_miss = 1;  ///< The same for the backup speculator.
  double T_p = 0;     ///< The primary speculator's time for one round's cache.
  double T_b = 0;     ///< The backup speculator's time for one proposal.
};

/// SD: E_SD / (1 + T_SD).
inline double SpeedupSd(double E_SD, double T_SD) {
  FT_CHECK(T_SD >= 0, "a time of {}", T_SD);
  return E_SD / (1 + T_SD);
}

/// Theorem 7: SSD's speed-up over autoregressive decoding, one sequence. Corollary 16: the same for
/// each of a batch of `b` sequences that all wait for any sequence's backup; infinite `b` gives the
/// corollary's limit.
inline double SpeedupSsd(const SsdRound& round, double b = 1) {
  CheckProbability(round.p_hit);
  FT_CHECK(round.T_p >= 0 && round.T_b >= 0 && b >= 1);
  const double tokens = round.p_hit * round.E_hit + (1 - round.p_hit) * round.E_miss;
  const double all_hit = std::pow(round.p_hit, b);
  return tokens / (all_hit * std::max(1.0, round.T_p) + (1 - all_hit) * (1 + round.T_b));
}

/// Equation (1): the unconditional hit rate from those after a primary's and after a backup's
/// proposal. Where the first is 1 and the second 0, the first round, a primary's, decides: 1.
inline double HitRate(double p_hit_p, double p_hit_b) {
  CheckProbability(p_hit_p);
  CheckProbability(p_hit_b);
  const double changing = p_hit_b + (1 - p_hit_p);
  return changing == 0 ? 1 : p_hit_b / changing;
}

/// Corollary 8: SSD's speed over SD's, with the same speculator as primary, backup and SD's draft.
/// At least 1.
inline double GainOverSd(double p_hit, double T_SD) {
  const SsdRound round{.p_hit = p_hit, .T_p = T_SD, .T_b = T_SD};
  return SpeedupSsd(round) / SpeedupSd(1, T_SD);
}

/// P(cache hit) after a proposal whose outcome node follows `nodes` (A.2's p_hit,p): the sum over k
/// of P(k) p_hit^k(F_k). `shape` has one fan-out for each node.
inline double HitProbability(const FanoutShape& shape, const NodeDistribution& nodes,
                             const HitCurves& curves) {
  FT_CHECK(shape.at.size() == nodes.size(), "{} fan-outs for {} nodes", shape.at.size(),
           nodes.size());
  const int proposal = std::ssize(nodes) - 1;
  double hit = 0;
  for (int k = 0; k <= proposal; ++k) hit += nodes[k] * curves.at(k, proposal).hit(shape.at[k]);
  return hit;
}

// NOLINTEND(readability-identifier-naming)

}  // namespace foretoken::theory
