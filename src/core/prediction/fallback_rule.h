#pragma once

#include <optional>
#include <string>

#include "core/prediction/cost_model.h"
#include "core/prediction/predict.h"
#include "core/speculation/plan.h"

namespace foretoken {

// NOLINTBEGIN(readability-identifier-naming): the paper's symbols.

/// Theorem 17: the batch size b* below which a just-in-time draft (time T_p, E_hit tokens) is the
/// better backup, and from which a backup without latency (E_miss tokens) is. 0: the fast one
/// always; infinity: the slow one always (the logarithm's argument lies outside (0, 1)). Needs
/// T_p <= 1, as the theorem does; times are in units of a target pass.
double CriticalBatch(double p_hit, double E_hit, double E_miss, double T_p);

/// Up to which batch a just-in-time draft is the better fallback: Theorem 17 on measured times and
/// rates, and the same question put to Predict, which knows this engine's rule.
struct FallbackRule {
  Fallback fast = Fallback::kNone;  ///< What the just-in-time draft is compared with.
  double p_hit = 0;                 ///< With a just-in-time draft, batch 1.
  double E_hit = 1;                 ///< Tokens of a round on the draft's proposal of K tokens.
  double E_miss = 1;                ///< The same on a proposal of `fast`.
  double T_p = 0;     ///< Just-in-time drafting over a target pass; the theorem's 1 at most.
  double b_star = 0;  ///< Theorem 17's b*; may be 0 or infinite.
  int crossover = 0;  ///< The least batch at which `fast` is predicted faster; 0: none up to
                      ///< kMostBatch.
  static constexpr int kMostBatch = 256;
};

// NOLINTEND(readability-identifier-naming)

/// For `plan` of mode ssd, its K and B. `fast` is the measured fallback without a draft that gives
/// the most tokens. None where the draft is not measured.
std::optional<FallbackRule> FindFallbackRule(const CostModel& model, const SpeculationPlan& plan,
                                             double context);

/// In two sentences.
std::string ExplainFallbackRule(const FallbackRule& rule);

}  // namespace foretoken
