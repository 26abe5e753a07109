#include "planner/online_planner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <ctime>

#include "base/check.h"
#include "prediction/fanout_solver.h"

namespace foretoken {
namespace {

// Tokens of the mean of all sequences that a sequence's own acceptance counts beside.
constexpr double kSequencePrior = 24;
// Planning may take this share of the time. After a change of mode looks come early, and at the
// first sequences' begin: a wrong mode costs more than they do.
constexpr double kPlanningShare = 0.0025;
constexpr int kFirstLooks = 128;
constexpr std::int64_t kLooksWhileYoung = 16;
constexpr int kFirstLookahead = 4;
constexpr int kFirstFanout = 3;
// What a change must promise: changing costs, and predictions err.
constexpr double kModeGain = 1.02;
constexpr double kPlanGain = 1.005;
// After a change of mode the draft first reads the contexts: so many rounds at most.
constexpr int kReadingRounds = 64;
// Priors where the draft is idle and nothing was measured.
constexpr double kContention = 1.05;
constexpr double kContentionWeight = 8;
// Theorem 12 needs r > 0; where a fit has none, all candidates are as good as each other.
constexpr double kLeastExponent = 0.01;

double Tilt(const SequenceEstimate& sequence, double mean) {
  const double own =
      (kSequencePrior * mean + sequence.accepted) / (kSequencePrior + sequence.trials);
  return mean > 0 ? own / mean : 1;
}

// The thread's own time: on a busy machine, looks would otherwise be put off by what others do.
double ThreadUs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

// Batches of 1, 2, 3 to 4, 5 to 8 ... sequences, 129 and more.
int LevelOf(const Workload& load) {
  return std::min(static_cast<int>(std::bit_width(static_cast<unsigned>(load.batch - 1))), 8);
}

template <typename Items, typename Item>
bool Contains(const Items& items, Item item) {
  return std::find(items.begin(), items.end(), item) != items.end();
}

}  // namespace

RowRatios OnlinePlanner::FirstContention(const CostModel& prior) {
  return {prior.target.rows(), std::max(kContention, prior.target_contention), kContentionWeight};
}

OnlinePlanner::OnlinePlanner(const CostModel& prior, const PlannerSettings& settings)
    : settings_(settings),
      prior_(prior),
      target_(prior.target),
      draft_alone_(prior.draft.rows().empty() ? TimeTable::Line(1, 0) : prior.draft),
      draft_on_target_(prior.draft_on_target.rows().empty() ? TimeTable::Line(1, 0)
                                                            : prior.draft_on_target),
      contention_(FirstContention(prior)),
      host_us_(prior.host_us, 1),
      rounds_since_switch_(-kReadingRounds) {
  draft_.coverage = FadingMean(1, 1e9);  // A draft model always has something to say.
  ngram_.acceptance = AcceptanceEstimate(0.5);
  retrieval_.acceptance = AcceptanceEstimate(0.5);
  retrieval_.us = prior.retrieval.us;
  random_.acceptance = AcceptanceEstimate(0);
  // Random tokens are never better than none: not a choice beside others.
  auto& fallbacks = settings_.limits.fallbacks;
  if (fallbacks.size() > 1) {
    const auto end = std::remove(fallbacks.begin(), fallbacks.end(), Fallback::kRandom);
    fallbacks.resize(static_cast<std::size_t>(end - fallbacks.begin()));
  }
}

bool OnlinePlanner::MustDecodePlainly(const SpeculationPlan& wanted) const {
  return wanted.mode == Mode::kAuto && Contains(settings_.limits.modes, Mode::kAr) && indebted_;
}

RankedPlan OnlinePlanner::Plainly(const CostModel& model, const Workload& load) {
  return {SpeculationPlan{}, Predict(model, {}, load)};
}

// On the target's device the draft first reads the contexts, while nothing is decoded. (Sixteen
// sequences that changed to SD for 2 % had 20 to 40 tokens left each, and lost 4 %.)
double OnlinePlanner::RateFrom(Mode current, const RankedPlan& next, const Workload& load) const {
  const double rate = next.prediction.tokens_per_second;
  if (next.plan.mode != Mode::kSd || current == Mode::kSd) return rate;
  const int rows = prior_.draft_on_target.rows().back();
  const double reading_us = load.context * draft_on_target_.us(rows, load.context) / rows;
  return 1 / (1 / rate + reading_us / 1e6 / load.tokens_left);
}

ProposerModel OnlinePlanner::Describe(const Source& source, double tilt) {
  return {.acceptance = source.acceptance.Curve(tilt),
          .coverage = source.coverage.value(),
          .mean_rows = 0,
          .us = source.us,
          .curves = {.partial = source.partial.Curve(), .full = source.full.Curve()}};
}

CostModel OnlinePlanner::Model(const SequenceEstimate& sequence) const {
  CostModel model = prior_;
  model.target = target_.Table();
  if (!prior_.draft_on_target.rows().empty()) model.draft_on_target = draft_on_target_.Table();
  if (!prior_.draft.rows().empty()) model.draft = draft_alone_.Table();
  model.target_contention = std::max(1.0, contention_.mean().value());
  model.target_beside_draft = model.target.Scaled(contention_.All());
  model.host_us = host_us_.value();
  model.host_row_us = 0;
  model.draft_model = Describe(draft_, Tilt(sequence, draft_.acceptance.mean()));
  model.ngram = Describe(ngram_, 1);
  model.retrieval = Describe(retrieval_, 1);
  model.random = Describe(random_, 1);
  for (int mode = 0; mode < kModes; ++mode) model.correction[mode] = progress_[mode].correction();
  return model;
}

SpeculationPlan OnlinePlanner::Start(const CostModel& model) const {
  const PlanLimits& limits = settings_.limits;
  if (Contains(limits.modes, Mode::kAr)) return {};
  const int K = std::clamp(kFirstLookahead, limits.min_lookahead, limits.max_lookahead);
  if (!Contains(limits.modes, Mode::kSsd)) return {.mode = limits.modes[0], .lookahead = K};
  const int fanout =
      std::clamp(kFirstFanout, *limits.mean_fanouts.begin(), limits.mean_fanouts.back());
  const int budget = limits.cache_budget > 0 ? limits.cache_budget : fanout * (K + 1);
  return PlanSsd(model, K, budget, limits.fallbacks[0]);
}

// The best of a few plans of each mode, then uphill.
RankedPlan OnlinePlanner::Climb(const CostModel& model, const Workload& load) const {
  RankedPlan ranked{.plan = Start(model), .prediction = {}};
  for (int step = 0; step < 4; ++step) {
    const RankedPlan better = ImprovePlan(model, settings_.limits, load, ranked.plan);
    if (better.plan == ranked.plan) break;
    ranked = better;
  }
  return ranked;
}

// `wanted` of mode ssd with the fastest fallback that it leaves open.
RankedPlan OnlinePlanner::FillIn(const CostModel& model, const SpeculationPlan& wanted,
                                 const Workload& load) const {
  RankedPlan best;
  const auto consider = [&](Fallback fallback) {
    SpeculationPlan plan = wanted;
    plan.fallback = fallback;
    plan.fanout = FanoutRule::kGiven;
    Reshape(model, wanted, &plan);
    if (!CanPredict(model, plan)) return;
    const Prediction prediction = Predict(model, plan, load);
    if (prediction.tokens_per_second > best.prediction.tokens_per_second) best = {plan, prediction};
  };
  if (wanted.fallback != Fallback::kAuto) {
    consider(wanted.fallback);
  } else {
    for (const Fallback fallback : settings_.limits.fallbacks) consider(fallback);
  }
  FT_CHECK(best.plan.mode == Mode::kSsd, "fallback {} cannot be planned",
           FallbackName(wanted.fallback));
  return best;
}

SpeculationPlan OnlinePlanner::FirstPlan(const SpeculationPlan& wanted, const Workload& load,
                                         SequenceEstimate* sequence) {
  FT_CHECK(wanted.open());
  sequence->wanted = wanted;
  if (replans_ >= kLooksWhileYoung) sequence->rounds = kFirstLooks;  // No early looks.
  const CostModel model = Model(*sequence);
  RankedPlan ranked;
  if (wanted.mode != Mode::kAuto) {
    ranked = FillIn(model, wanted, load);
  } else if (MustDecodePlainly(wanted)) {
    ranked = Plainly(model, load);
  } else if (const auto& last = LastPlan(load); last.has_value()) {
    ranked = {*last, Predict(model, *last, load)};
  } else {
    ranked = Climb(model, load);
  }
  sequence->predicted_at = load;
  sequence->predicted = ranked.prediction.tokens_per_second /
                        model.correction[static_cast<std::size_t>(ranked.plan.mode)];
  Reshape(model, wanted, &ranked.plan);
  if (wanted.mode == Mode::kAuto) LastPlan(load) = ranked.plan;
  return ranked.plan;
}

// A look that is due is one at every sequence of the round: they share passes, so that a mode pays
// or not for all of them, and only rounds of one mode teach how fast it is.
bool OnlinePlanner::TimeForAnotherLook(const SpeculationPlan& current,
                                       const SequenceEstimate& sequence, const Workload& load) {
  if (const int level = LevelOf(load); level != level_) {
    level_ = level;
    level_us_ = now_us_;
  }
  if (now_us_ >= next_look_us_) looked_us_ = now_us_;
  if (now_us_ == looked_us_ || (now_us_ == level_us_ && LastPlan(load) != current)) return true;
  const auto rounds = static_cast<unsigned>(sequence.rounds);
  return rounds >= 4 && rounds <= kFirstLooks && std::has_single_bit(rounds);
}

std::optional<SpeculationPlan>& OnlinePlanner::LastPlan(const Workload& load) {
  return last_plans_[static_cast<std::size_t>(LevelOf(load))];
}

bool OnlinePlanner::Follows() const { return now_us_ == level_us_ || now_us_ == looked_around_us_; }

SpeculationPlan OnlinePlanner::Replan(const SpeculationPlan& current, const Workload& load,
                                      SequenceEstimate* sequence) {
  const SpeculationPlan& wanted = sequence->wanted;
  const bool plainly = MustDecodePlainly(wanted);
  const bool must_stop = plainly && current.mode != Mode::kAr;
  if (!must_stop && !TimeForAnotherLook(current, *sequence, load)) return current;
  const double start_us = ThreadUs();
  const CostModel model = Model(*sequence);
  // With mode and fallback given only the fan-outs follow what was learned: nothing to compare.
  const bool given = wanted.mode != Mode::kAuto && wanted.fallback != Fallback::kAuto;
  const Prediction now = given ? Prediction{} : Predict(model, current, load);
  const bool chooses = wanted.mode == Mode::kAuto && !plainly;
  const bool leads = chooses && !Follows();
  const RankedPlan best = plainly   ? Plainly(model, load)
                          : chooses ? LookAround(model, current, now, load)
                                    : FillIn(model, wanted, load);
  // One that tries something is compared with what the others do.
  const std::optional<SpeculationPlan>& last = LastPlan(load);
  const bool tries = leads && tried_.has_value() && current.mode == tried_->mode &&
                     last.has_value() && last->mode != tried_->mode;
  const RankedPlan usual =
      tries ? RankedPlan{*last, Predict(model, *last, load)} : RankedPlan{current, now};
  const double gain = best.plan.mode != usual.plan.mode ? kModeGain : kPlanGain;
  const bool explores = chooses && explored_us_ == now_us_;
  const bool joins = chooses && !leads && TriedByAll();
  const bool change =
      must_stop || given || joins || explores ||
      RateFrom(current.mode, best, load) > gain * usual.prediction.tokens_per_second;
  RankedPlan next = change ? best : usual;
  std::optional<SpeculationPlan> trial;
  if (leads) trial = WorthTrying(model, current, next, load);
  if (trial.has_value()) next = {*trial, Predict(model, *trial, load)};
  SpeculationPlan plan = next.plan;
  sequence->predicted_at = load;
  sequence->predicted =
      next.prediction.tokens_per_second / model.correction[static_cast<std::size_t>(plan.mode)];
  if (plan.mode != current.mode) {
    ++switches_;
    rounds_since_switch_ = -kReadingRounds;
    sequence->rounds = 0;  // A new mode is looked at early and often.
  }
  Reshape(model, wanted, &plan);
  const bool scouts = trial.has_value() && !TriedByAll();
  if (wanted.mode == Mode::kAuto && !scouts) LastPlan(load) = plan;
  ++replans_;
  const double took_us = ThreadUs() - start_us;
  replan_us_ += took_us;
  if (now_us_ == looked_us_ || now_us_ == level_us_) {
    next_look_us_ = std::max(now_us_, next_look_us_) + took_us / kPlanningShare;
  }
  return plan;
}

void OnlinePlanner::Reshape(const CostModel& model, const SpeculationPlan& wanted,
                            SpeculationPlan* plan) const {
  plan->speculation_length = wanted.speculation_length;
  if (plan->mode != Mode::kSsd) return;
  plan->saguaro_c = wanted.saguaro_c;
  plan->cache_order = wanted.cache_order;
  const FanoutRule rule = wanted.mode == Mode::kAuto ? settings_.fanout : wanted.fanout;
  const int K = plan->lookahead;
  const int budget = plan->primary.budget();
  const auto shape = [&](const ProposerModel* proposer) {
    const ProposerModel& verified =
        proposer != nullptr && proposer->measured() ? *proposer : model.draft_model;
    if (rule == FanoutRule::kUniform) return EvenFanout(budget, K);
    if (rule == FanoutRule::kGeometric) {
      std::array<double, kMaxFanout> hits{};
      for (int f = 1; f <= kMaxFanout; ++f) hits[f - 1] = verified.curves.partial.hit(f);
      const double r = std::max(FitPowerLaw(hits).r, kLeastExponent);
      return GeometricFanoutShape(verified.acceptance[0], r, K, budget);
    }
    return SolveFanout(OutcomeNodes(verified.acceptance, K), verified.curves, budget);
  };
  if (rule == FanoutRule::kGiven) return;
  plan->after_fallback = shape(model.proposer(plan->fallback));
  plan->primary = shape(&model.draft_model);
}

PlannerReport OnlinePlanner::Report() const {
  PlannerReport report;
  for (int mode = 0; mode < kModes; ++mode) {
    const Progress& progress = progress_[mode];
    const double seconds = progress.us / 1e6;
    report.modes[mode] = {.rounds = progress.rounds,
                          .tokens_per_second = seconds > 0 ? progress.tokens / seconds : 0,
                          .predicted = seconds > 0 ? progress.predicted_tokens / seconds : 0,
                          .correction = progress.correction()};
  }
  report.replans = replans_;
  report.switches = switches_;
  report.replan_us = replans_ > 0 ? replan_us_ / static_cast<double>(replans_) : 0;
  return report;
}

}  // namespace foretoken
