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
// The same of how row counts compare, and what an exploration must promise.
constexpr double kRowsDoubt = 0.03;
constexpr double kExploringGain = 1.01;

}  // namespace

// Of the sequences of a round the first looks at the neighbours of its plan; for the others there
// is only the question whether what it chose is better for them too. (A look around each took 2.4
// ms at a batch of 4.) Where the batch has just grown or shrunk, the question is whether what was
// chosen for its size the last time is better.
RankedPlan OnlinePlanner::LookAround(const CostModel& model, const SpeculationPlan& current,
                                     const Prediction& now, const Workload& load) {
  const std::optional<SpeculationPlan>& last = LastPlan(load);
  if (!Follows() || !last.has_value()) {
    looked_around_us_ = now_us_;
    const RankedPlan best = ImprovePlan(model, settings_.limits, load, current);
    const bool all_ssd = last.has_value() && last->mode == Mode::kSsd &&
                         current.mode == Mode::kSsd && best.plan.mode == Mode::kSsd;
    if (!all_ssd) return best;
    const auto unknown = WorthExploring(model, best.plan, load);
    if (!unknown.has_value()) return best;
    explored_us_ = now_us_;
    return {*unknown, Predict(model, *unknown, load)};
  }
  if (*last == current) return {current, now};
  return {*last, Predict(model, *last, load)};
}

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
  auto contention = contention_.All();
  const double less = kOptimism * contention_.mean().doubt(kContentionDoubt);
  for (double& ratio : contention) ratio = std::max(std::min(ratio, 1.0), ratio - less);
  hoped.target_beside_draft = hoped.target.Scaled(contention);
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
  if (!known && RateFrom(current.mode, best, load) < bar) return std::nullopt;
  tried_ = best.plan;
  if (begins) rounds_since_trial_ = 0;
  const bool another_does = !begins && !TriedByAll() && current.mode != tried_->mode;
  return another_does ? std::nullopt : tried_;
}

// Tables are measured in a second of a noisy machine, and passes of rows that are never used
// correct nothing. So an SSD plan that would be better if rows that were not seen beside the draft
// took a little less than is believed is taken, by all, and what its passes take decides.
std::optional<SpeculationPlan> OnlinePlanner::WorthExploring(const CostModel& model,
                                                             const SpeculationPlan& best,
                                                             const Workload& load) const {
  CostModel hoped = model;
  hoped.target_beside_draft = model.target.Scaled(contention_.All(kRowsDoubt));
  PlanLimits limits = settings_.limits;
  limits.modes = {};
  limits.modes.push_back(Mode::kSsd);
  const RankedPlan other = ImprovePlan(hoped, limits, load, best);
  if (other.plan.lookahead == best.lookahead) return std::nullopt;
  const double bar = kExploringGain * Predict(hoped, best, load).tokens_per_second;
  if (other.prediction.tokens_per_second < bar) return std::nullopt;
  return other.plan;
}

bool OnlinePlanner::TriedByAll() const {
  return tried_.has_value() && rounds_since_trial_ > kTrialRounds;
}

}  // namespace foretoken
