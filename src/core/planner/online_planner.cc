#include "core/planner/online_planner.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "base/check.h"
#include "base/threads/wait_clock.h"

namespace foretoken {
namespace {

// How much faster a change must be predicted to be: changing costs, and predictions err.
constexpr double kModeGain = 1.02;
constexpr double kPlanGain = 1.005;

// Keeps what is predicted for the sequence from now on, to be compared with what comes.
void SetPrediction(const CostModel& model, const RankedPlan& ranked, const Workload& load,
                   SequenceEstimate* sequence) {
  sequence->predicted_at = load;
  sequence->predicted = ranked.prediction.tokens_per_second / model.correction[ranked.plan.mode];
}

}  // namespace

OnlinePlanner::OnlinePlanner(const CostModel& prior, const PlannerSettings& settings)
    : settings_(settings), learned_(prior) {
  // A baseline is no choice beside others: random tokens are never better than none.
  auto& fallbacks = settings_.limits.fallbacks;
  if (fallbacks.size() > 1) {
    const auto end = std::remove_if(fallbacks.begin(), fallbacks.end(), [](Fallback fallback) {
      return fallback.kind == Fallback::Kind::kDrafter && InfoOf(fallback.drafter).baseline;
    });
    fallbacks.resize(end - fallbacks.begin());
  }
}

std::optional<SpeculationPlan>& OnlinePlanner::LastPlan(const Workload& load) {
  return last_plans_[BatchLevel(load)];
}

bool OnlinePlanner::MayDecodePlainly() const {
  const auto& modes = settings_.limits.modes;
  return std::find(modes.begin(), modes.end(), Mode::kAr) != modes.end();
}

bool OnlinePlanner::Affords(Mode current, Mode next, const Workload& load, int sequences) const {
  if (next == current || !next.drafts() || !MayDecodePlainly()) return true;
  return loss_budget_.HasRoomFor(sequences * learned_.ReadingUs(current, next, load),
                                 learned_.PlainRoundUs(load));
}

void OnlinePlanner::ObservePass(const PassObservation& pass) {
  replan_schedule_.Advance(pass.rounds * (pass.pass_us + pass.wait_us + pass.host_us));
  const bool warmed_up = warm_up_.Observe(pass);
  if (warmed_up) trial_.CountRound();
  const double round_us = learned_.UsualRoundUs(pass);
  if (pass.chosen) {
    const double plain_us = learned_.PlainRoundUs(pass.load());
    if (pass.mode != Mode::kAr) {
      loss_budget_.AddLoss(round_us - plain_us * pass.tokens / pass.sequences, plain_us);
    }
    loss_budget_.Update(replan_schedule_.now_us(), plain_us);
  }
  learned_.ObservePass(pass, round_us, warmed_up);
}

SpeculationPlan OnlinePlanner::FirstPlan(const SpeculationPlan& wanted, const Workload& load,
                                         SequenceEstimate* sequence) {
  FT_CHECK(wanted.open());
  load_ = load;
  sequence->wanted = wanted;
  replan_schedule_.Begin(sequence);
  const CostModel model = learned_.Model(*sequence);
  RankedPlan first;
  if (!wanted.mode.planned()) {
    first = FillIn(model, settings_, wanted, load);
  } else if (MustDecodePlainly()) {
    first = RankPlan(model, {}, load);
  } else if (const auto& last = LastPlan(load); last.has_value()) {
    first = RankPlan(model, *last, load);
  } else {
    first = Climb(model, settings_.limits, load);
  }
  SetPrediction(model, first, load, sequence);
  Shape(model, settings_, wanted, &first.plan);
  if (wanted.mode.planned()) LastPlan(load) = first.plan;
  return first.plan;
}

SpeculationPlan OnlinePlanner::Replan(const SpeculationPlan& current, const Workload& load,
                                      SequenceEstimate* sequence) {
  const SpeculationPlan& wanted = sequence->wanted;
  const bool plainly = wanted.mode.planned() && MustDecodePlainly();
  const bool must_stop = plainly && current.mode.drafts();
  if (!must_stop && !replan_schedule_.Due(current, LastPlan(load), load, *sequence)) return current;
  // The thread's own time: on a busy machine, replans would otherwise be put off by what others do.
  const std::int64_t start_ns = ThreadNs();
  load_ = load;
  const CostModel model = learned_.Model(*sequence);
  Choice choice;
  if (!wanted.mode.planned()) {
    choice.next = ChooseOpenPart(model, current, wanted, load);
  } else if (plainly) {
    choice.next = RankPlan(model, must_stop ? SpeculationPlan{} : current, load);
  } else {
    choice = ChooseMode(model, current, load);
  }
  SetPrediction(model, choice.next, load, sequence);
  SpeculationPlan plan = choice.next.plan;
  if (plan.mode != current.mode) {
    ++switches_;
    warm_up_.Restart();
    sequence->rounds = 0;  // A new mode is replanned early and often.
    // Plain decoding gives nothing to see.
    if (!plan.mode.drafts()) replan_schedule_.Begin(sequence);
  }
  Shape(model, settings_, wanted, &plan);
  if (wanted.mode.planned() && !choice.is_trial_of_one) LastPlan(load) = plan;
  replan_schedule_.Took(static_cast<double>(ThreadNs() - start_ns) / 1e3);
  return plan;
}

bool OnlinePlanner::IsBetter(const RankedPlan& best, const RankedPlan& usual, Mode current,
                             const Workload& load) const {
  // Plain decoding has nothing to begin with.
  const bool begins = best.plan.mode != usual.plan.mode && best.plan.mode.drafts();
  const double gain = begins ? kModeGain : kPlanGain;
  return learned_.RateFrom(current, best, load) > gain * usual.prediction.tokens_per_second;
}

RankedPlan OnlinePlanner::ChooseOpenPart(const CostModel& model, const SpeculationPlan& current,
                                         const SpeculationPlan& wanted,
                                         const Workload& load) const {
  const RankedPlan best = FillIn(model, settings_, wanted, load);
  // With the fallback given only the fan-outs follow what was learned: nothing to compare.
  if (wanted.fallback != Fallback::kAuto) return best;
  const RankedPlan usual = RankPlan(model, current, load);
  return IsBetter(best, usual, current.mode, load) ? best : usual;
}

OnlinePlanner::Choice OnlinePlanner::ChooseMode(const CostModel& model,
                                                const SpeculationPlan& current,
                                                const Workload& load) {
  const RankedPlan now = RankPlan(model, current, load);
  const bool leads = !replan_schedule_.follows();
  const RankedPlan best = FindBetterPlan(model, now, load);
  // One that tries something is compared with what the others do.
  const std::optional<SpeculationPlan>& last = LastPlan(load);
  const bool alone =
      leads && trial_.tries(current.mode) && last.has_value() && last->mode != current.mode;
  const RankedPlan usual = alone ? RankPlan(model, *last, load) : now;
  const bool joins = !leads && trial_.by_all();
  const bool change = joins || replan_schedule_.explores() ||
                      (IsBetter(best, usual, current.mode, load) &&
                       Affords(current.mode, best.plan.mode, load, load.batch));
  Choice choice{.next = change ? best : usual};
  if (!leads) return choice;
  const std::optional<SpeculationPlan> trial =
      trial_.Choose(learned_, model, settings_.limits, current, choice.next, load);
  if (!trial.has_value()) return choice;
  if (!Affords(current.mode, trial->mode, load, 1)) {
    trial_.GiveUp();
    return choice;
  }
  return {.next = RankPlan(model, *trial, load), .is_trial_of_one = !trial_.by_all()};
}

// The first sequence of a round compares the neighbours of its plan; for the others there is only
// the question whether what it chose is better for them too. (The neighbours of each plan took 2.4
// ms at a batch of 4.) Where the batch has just grown or shrunk, the question is whether what was
// chosen for its size the last time is better.
RankedPlan OnlinePlanner::FindBetterPlan(const CostModel& model, const RankedPlan& now,
                                         const Workload& load) {
  const std::optional<SpeculationPlan>& last = LastPlan(load);
  if (replan_schedule_.follows() && last.has_value()) {
    return *last == now.plan ? now : RankPlan(model, *last, load);
  }
  replan_schedule_.Lead();
  const RankedPlan best = ImprovePlan(model, settings_.limits, load, now.plan);
  const bool all_ssd =
      last.has_value() && last->mode.during() && now.plan.mode.during() && best.plan.mode.during();
  if (!all_ssd) return best;
  const auto unknown = RowsWorthSeeing(learned_, model, settings_.limits, best.plan, load);
  if (!unknown.has_value()) return best;
  replan_schedule_.Explore();
  return RankPlan(model, *unknown, load);
}

std::string OnlinePlanner::Reason() const {
  if (load_.batch == 0) return {};
  const CostModel model = learned_.Model({});
  std::vector<RankedPlan> ranked;
  for (const Mode mode : settings_.limits.modes) {
    PlanLimits of_mode = settings_.limits;
    of_mode.modes = {mode};
    const SpeculationPlan best = Climb(model, of_mode, load_).plan;
    if (best.mode == mode) ranked.push_back(RankPlan(model, best, load_));
  }
  if (ranked.empty()) return {};
  std::ranges::stable_sort(ranked, std::ranges::greater{}, [](const RankedPlan& plan) {
    return plan.prediction.tokens_per_second;
  });
  return ExplainChoice(ranked);
}

PlannerReport OnlinePlanner::Report() const {
  return {.modes = learned_.records().Report(),
          .replans = replan_schedule_.replans(),
          .switches = switches_,
          .replan_us = replan_schedule_.mean_us(),
          .reason = Reason()};
}

}  // namespace foretoken
