#include "core/planner/trial.h"

#include <algorithm>

namespace foretoken {
namespace {

// How much faster a trial must be predicted to be if what is not known well is as good as may be
// hoped. A trial's proposals are short: one of 12 tokens in vain would cost the whole loss budget.
constexpr double kTrialGain = 1.03;
constexpr int kTrialLookahead = 2;
// By one sequence, which is also the time before another trial begins; and by all after it.
constexpr int kTrialRounds = 8;
constexpr int kCommonTrialRounds = 16;
// The same of a plan whose rows are to be seen.
constexpr double kExploringGain = 1.01;

}  // namespace

bool Trial::by_all() const { return tried_.has_value() && rounds_ > kTrialRounds; }

std::optional<SpeculationPlan> Trial::Choose(const LearnedModel& learned, const CostModel& model,
                                             const PlanLimits& limits,
                                             const SpeculationPlan& current, const RankedPlan& next,
                                             const Workload& load) {
  if (rounds_ > kTrialRounds + kCommonTrialRounds) tried_.reset();
  const bool begins = !tried_.has_value();
  PlanLimits tries_of = limits;
  // Beside a draft's mode other drafts are tried, and texts whose rows have prices, since those
  // that do not pay are then not proposed; and the other modes of that draft: its rounds show how
  // good it is, but not how fast they are. (Eight slow rounds at the begin kept SSD, which is 1.2
  // times as fast, out of two runs of 16 beside mode staged.)
  if (model.DraftsByPasses(current.mode)) {
    tries_of.modes = ModesOfOtherDrafters(model, limits, current.mode);
    for (const Mode mode : limits.modes) {
      const bool same_draft = mode.drafts() && mode.drafter == current.mode.drafter;
      if (same_draft && mode != current.mode) tries_of.modes.push_back(mode);
    }
  }
  const bool stays = current.mode == next.plan.mode && !tries_of.modes.empty();
  if (begins && (!stays || rounds_ < kTrialRounds)) return std::nullopt;
  const bool known = tries(next.plan.mode);
  if (known && by_all()) return std::nullopt;
  const CostModel hoped = learned.Hoped(model);
  RankedPlan best;
  if (begins) {
    // Beside a draft's mode as many as that proposes: with fewer none could be faster.
    const int most = model.DraftsByPasses(current.mode)
                         ? std::max(kTrialLookahead, current.lookahead)
                         : kTrialLookahead;
    tries_of.max_lookahead = std::clamp(most, limits.min_lookahead, limits.max_lookahead);
    best = ImprovePlan(hoped, tries_of, load, SpeculationPlan{});
    if (best.plan.mode == current.mode) return std::nullopt;
  } else {
    best = RankPlan(hoped, *tried_, load);
  }
  tried_.reset();
  const double bar = kTrialGain * next.prediction.tokens_per_second;
  if (!known && learned.RateFrom(current.mode, best, load) < bar) return std::nullopt;
  tried_ = best.plan;
  if (begins) rounds_ = 0;
  const bool another_does = !begins && !by_all() && current.mode != tried_->mode;
  return another_does ? std::nullopt : tried_;
}

// Tables are measured in a second of a noisy machine, and passes of rows that are never used
// correct nothing. So an SSD plan that would be better if rows that were not seen beside the draft
// took a little less than is believed is taken, by all, and what its passes take decides.
std::optional<SpeculationPlan> RowsWorthSeeing(const LearnedModel& learned, const CostModel& model,
                                               const PlanLimits& limits,
                                               const SpeculationPlan& best, const Workload& load) {
  const CostModel hoped = learned.WithCheaperUnseenRows(model);
  PlanLimits of_ssd = limits;
  of_ssd.modes = {};
  of_ssd.modes.push_back(Mode::kSsd);
  const RankedPlan other = ImprovePlan(hoped, of_ssd, load, best);
  if (other.plan.lookahead == best.lookahead) return std::nullopt;
  const double bar = kExploringGain * Predict(hoped, best, load).tokens_per_second;
  if (other.prediction.tokens_per_second < bar) return std::nullopt;
  return other.plan;
}

}  // namespace foretoken
