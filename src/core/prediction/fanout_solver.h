#pragma once

#include <span>

#include "base/static_vector.h"
#include "core/prediction/hit_curve.h"
#include "core/speculation/plan.h"

namespace foretoken {

/// P(outcome node = k) for k = 0 .. K.
using NodeDistribution = StaticVector<double, kMaxProposal + 1>;

/// The distribution of the outcome node of a chain of K = `lookahead` tokens. `acceptance[k]` is
/// P(token k + 1 accepted | the first k were); its last value holds for all further positions.
NodeDistribution OutcomeNodes(std::span<const double> acceptance, int lookahead);

/// What a round emits in the mean: the accepted tokens and one more.
double ExpectedTokens(const NodeDistribution& nodes);

/// Theorem 18 in whole numbers, on any measured hit curves: the fan-outs with the highest
/// P(cache hit) under sum F_k = `budget`, F_k <= kMaxFanout. Each token goes where it gains most;
/// that is optimal because hit curves are concave. A budget beyond what the nodes can hold is cut.
/// Takes O(budget * K); allocates nothing.
FanoutShape SolveFanout(const NodeDistribution& nodes, const HitCurves& curves, int budget);

// NOLINTBEGIN(readability-identifier-naming): the paper's symbols.

/// Theorem 12: the real fan-outs F_0 .. F_K that maximise the hit rate under sum F_k = B, for
/// acceptance rate `a_p` and a miss rate of F^-r (Definition 11). They may lie below 1, where that
/// power law means nothing; GeometricFanoutShape rounds them. At a_p = 1 all of B is F_K, at a_p =
/// 0 it is F_0. Fills F[0 .. K].
void GeometricFanout(double a_p, double r, double B, std::span<double> F);

// NOLINTEND(readability-identifier-naming)

/// Theorem 12 in whole numbers: its real F_k, each rounded to a neighbour so that the sum is the
/// budget (as above), the one furthest below its real value first.
FanoutShape GeometricFanoutShape(double a_p, double r, int lookahead, int budget);

}  // namespace foretoken
