#include <algorithm>
#include <cmath>

#include "planner/online_planner.h"

namespace foretoken {
namespace {

// What a trial must promise if what is not known well is this many standard deviations better than
// what is believed. A trial's proposals are short: one of 12 tokens in vain would cost the debt's
// whole limit.
constexpr double kTrialGain = 1.03;
constexpr double kOptimism = 2;
constexpr int kTrialLookahead = 4;
// By one sequence, which is also the time before another trial begins; and by all after it.
constexpr int kTrialRounds = 8;
constexpr int kCommonTrialRounds = 16;
constexpr double kContentionDoubt = 0.04;  // The standard deviation of its prior.

}  // namespace

// (With means alone a perfect draft was never tried at a batch of 4 where 28 rows cost 5.5 times 4.
// Without hope for hits and contention it was not at a batch of 16 where SSD gains 7 %.)
CostModel OnlinePlanner::Hoped(const CostModel& model) const {
  CostModel hoped = model;
  const auto hope = [](const Source& source, ProposerModel* proposer) {
    for (double& chance : proposer->acceptance) {
      chance = std::min(1.0, chance + kOptimism * source.acceptance.doubt());
    }
    proposer->curves = {.partial = source.partial.Curve(kOptimism),
                        .full = source.full.Curve(kOptimism)};
  };
  hope(draft_, &hoped.draft_model);
  hope(ngram_, &hoped.ngram);
  hope(retrieval_, &hoped.retrieval);
  const double less = kOptimism * contention_.doubt(kContentionDoubt);
  hoped.target_contention = std::max(1.0, hoped.target_contention - less);
  for (int mode = 0; mode < kModes; ++mode) {  // A token less or more is a token's deviation.
    double& correction = hoped.correction[mode];
    const double most = std::min(1.0, correction + kOptimism * progress_[mode].doubt());
    correction = std::max(correction, most);
  }
  return hoped;
}

std::optional<SpeculationPlan> OnlinePlanner::WorthTrying(const CostModel& model,
                                                          const SpeculationPlan& current,
                                                          const RankedPlan& next,
                                                          const Workload& load) {
  if (rounds_since_trial_ > kTrialRounds + kCommonTrialRounds) tried_.reset();
  const bool begins = !tried_.has_value();
  // Not from modes that draft: their own rounds show how good the draft is.
  const bool stays = current.mode == next.plan.mode && !NeedsDraft(current.mode);
  if (begins && (!stays || rounds_since_trial_ < kTrialRounds)) return std::nullopt;
  const bool known = !begins && next.plan.mode == tried_->mode;
  if (known && TriedByAll()) return std::nullopt;
  const CostModel hoped = Hoped(model);
  RankedPlan best;
  if (begins) {
    PlanLimits limits = settings_.limits;
    limits.max_lookahead = std::clamp(kTrialLookahead, limits.min_lookahead, limits.max_lookahead);
    best = ImprovePlan(hoped, limits, load, SpeculationPlan{});
    if (best.plan.mode == current.mode) return std::nullopt;
  } else {
    best = {*tried_, Predict(hoped, *tried_, load)};
  }
  tried_.reset();
  const double bar = kTrialGain * next.prediction.tokens_per_second;
  if (!known && best.prediction.tokens_per_second < bar) return std::nullopt;
  tried_ = best.plan;
  if (begins) rounds_since_trial_ = 0;
  const bool another_does = !begins && !TriedByAll() && current.mode != tried_->mode;
  return another_does ? std::nullopt : tried_;
}

bool OnlinePlanner::TriedByAll() const {
  return tried_.has_value() && rounds_since_trial_ > kTrialRounds;
}

}  // namespace foretoken
