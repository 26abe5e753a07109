#include "core/prediction/plan_search.h"

#include <algorithm>
#include <cstdlib>

#include "core/prediction/fanout_solver.h"

namespace foretoken {
namespace {

// Calls visit(budget) for every cache budget at lookahead K.
template <typename Visit>
void ForEachBudget(const PlanLimits& limits, int lookahead, Visit visit) {
  if (limits.cache_budget) {
    if (*limits.cache_budget > lookahead) visit(*limits.cache_budget);
    return;
  }
  for (const int fanout : limits.mean_fanouts) {
    const int budget = fanout * (lookahead + 1);
    if (fanout <= kMaxFanout && budget <= limits.max_cache_budget) visit(budget);
  }
}

// Calls visit(plan) for every plan of `mode` at lookahead K that can be predicted.
template <typename Visit>
void ForEachPlanAt(const CostModel& model, const PlanLimits& limits, Mode mode, int lookahead,
                   Visit& visit) {
  const SpeculationPlan plan{.mode = mode, .lookahead = lookahead};
  if (!mode.during()) {
    if (CanPredict(model, plan)) visit(plan);
    return;
  }
  if (!model.draft_model().measured()) return;
  for (const Fallback fallback : limits.fallbacks) {
    const ProposerModel* proposer = model.proposer(fallback);
    if (proposer != nullptr && !proposer->measured()) continue;
    ForEachBudget(limits, lookahead,
                  [&](int budget) { visit(PlanSsd(model, lookahead, budget, fallback)); });
  }
}

// Whether the mode proposes as many rows as it likes, whatever K.
bool HasRowsOfItsOwn(const CostModel& model, Mode mode) {
  const ProposerModel* proposer = model.proposer(mode);
  return mode.before() && proposer != nullptr && proposer->mean_rows > 0;
}

template <typename Visit>
void ForEachPlan(const CostModel& model, const PlanLimits& limits, Visit&& visit) {
  for (const Mode mode : limits.modes) {
    if (mode == Mode::kAr) {
      visit(SpeculationPlan{});
      continue;
    }
    if (HasRowsOfItsOwn(model, mode)) {
      ForEachPlanAt(model, limits, mode, kMaxPlannedLookahead, visit);
      continue;
    }
    // A longer plan has no longer proposals.
    const int most = model.DraftsByPasses(mode)
                         ? model.drafts[mode.drafter].pass.Longest(limits.max_lookahead)
                         : limits.max_lookahead;
    for (int K = limits.min_lookahead; K <= std::max(most, limits.min_lookahead); ++K) {
      ForEachPlanAt(model, limits, mode, K, visit);
    }
  }
}

// Keeps the fastest plan it is shown. A later one must be faster by more than rounding errors.
class Best {
 public:
  Best(const CostModel& model, const Workload& load) : model_(model), load_(load) {}

  void operator()(const SpeculationPlan& plan) {
    const RankedPlan candidate = RankPlan(model_, plan, load_);
    const double bar = best_.prediction.tokens_per_second * (1 + 1e-9);
    if (candidate.prediction.tokens_per_second > bar) best_ = candidate;
  }
  RankedPlan OrAr() const {
    return best_.prediction.tokens_per_second > 0 ? best_ : RankPlan(model_, {}, load_);
  }

 private:
  const CostModel& model_;
  const Workload& load_;
  RankedPlan best_;
};

// Shows `best` a few plans of each mode.
void ForSomeOfEach(const CostModel& model, const PlanLimits& limits, Best& best) {
  PlanLimits some = limits;
  // Which fallback matters less than what is looked for here, and is found from there. (With all of
  // them such a search took 420 us, most of a round of four sequences of the bundled target.)
  if (some.fallbacks.size() > 1) some.fallbacks.resize(1);
  some.mean_fanouts = {std::clamp(2, *limits.mean_fanouts.begin(), limits.mean_fanouts.back())};
  for (const int lookahead : {1, 2, 4, 8}) {
    some.min_lookahead = some.max_lookahead =
        std::clamp(lookahead, limits.min_lookahead, limits.max_lookahead);
    ForEachPlan(model, some, best);
  }
}

}  // namespace

StaticVector<Mode, kModeCount> PlanLimits::AllModes() {
  StaticVector<Mode, kModeCount> modes;
  for (const Mode mode : kModes) {
    if (!mode.planned() && !(mode.drafts() && InfoOf(mode.drafter).baseline)) modes.push_back(mode);
  }
  return modes;
}

StaticVector<Fallback, kFallbacks.size()> PlanLimits::AllFallbacks() {
  StaticVector<Fallback, kFallbacks.size()> fallbacks = {Fallback::kNone};
  for (const Fallback fallback : kFallbacks) {
    if (fallback != Fallback::kNone && fallback != Fallback::kAuto) fallbacks.push_back(fallback);
  }
  return fallbacks;
}

SpeculationPlan PlanSsd(const CostModel& model, int lookahead, int budget, Fallback fallback) {
  const auto solve = [&](const ProposerModel& proposer) {
    return SolveFanout(OutcomeNodes(proposer.acceptance, lookahead), proposer.curves, budget);
  };
  SpeculationPlan plan{.mode = Mode::kSsd, .lookahead = lookahead, .fallback = fallback};
  plan.primary = solve(model.draft_model());
  const ProposerModel* proposer = model.proposer(fallback);
  plan.after_fallback = proposer == nullptr ? plan.primary : solve(*proposer);
  return plan;
}

StaticVector<Mode, kModeCount> ModesOfOtherDrafters(const CostModel& model,
                                                    const PlanLimits& limits, Mode mode) {
  StaticVector<Mode, kModeCount> others;
  if (!model.DraftsByPasses(mode)) return others;
  for (const Mode other : limits.modes) {
    const bool drafts = model.DraftsByPasses(other) || HasRowsOfItsOwn(model, other);
    if (drafts && other.drafter != mode.drafter) others.push_back(other);
  }
  return others;
}

RankedPlan ImprovePlan(const CostModel& model, const PlanLimits& limits, const Workload& load,
                       const SpeculationPlan& current) {
  Best best(model, load);
  if (CanPredict(model, current)) best(current);
  if (!current.mode.drafts() || HasRowsOfItsOwn(model, current.mode)) {
    // It says nothing about the others.
    ForSomeOfEach(model, limits, best);
    return best.OrAr();
  }
  PlanLimits near = limits;
  near.modes = ModesOfOtherDrafters(model, limits, current.mode);  // Whose best K may be another.
  ForSomeOfEach(model, near, best);
  near.modes = limits.modes;
  const int narrowest = *limits.mean_fanouts.begin();
  const int widest = limits.mean_fanouts.back();
  const int K = std::clamp(current.lookahead, limits.min_lookahead, limits.max_lookahead);
  const int fanout = std::clamp(current.primary.budget() / (K + 1), narrowest, widest);
  near.mean_fanouts = {fanout};
  near.fallbacks = {current.fallback};
  near.min_lookahead = std::max(K - 1, limits.min_lookahead);
  near.max_lookahead = std::min(K + 1, limits.max_lookahead);
  ForEachPlan(model, near, best);  // One step in K, with every mode.
  // Half and twice the rows: where kernels work on blocks of rows, the next good K is not the next.
  for (const int other : {(K - 1) / 2, 2 * K + 1}) {
    const bool beyond = other < limits.min_lookahead || other > limits.max_lookahead;
    if (!beyond && std::abs(other - K) > 1) ForEachPlanAt(model, near, current.mode, other, best);
  }
  if (!current.mode.during()) return best.OrAr();
  near.modes = {Mode::kSsd};
  near.min_lookahead = near.max_lookahead = K;
  near.fallbacks = limits.fallbacks;
  ForEachPlan(model, near, best);  // Other fallbacks.
  near.fallbacks = {current.fallback};
  near.mean_fanouts = {};
  for (const int other : {fanout - 1, fanout + 1}) {
    if (other >= narrowest && other <= widest) near.mean_fanouts.push_back(other);
  }
  ForEachPlan(model, near, best);  // One step in B.
  return best.OrAr();
}

PlanChoice ChoosePlan(const CostModel& model, const PlanLimits& limits, const Workload& load) {
  PlanChoice choice;
  ForEachPlan(model, limits, [&](const SpeculationPlan& plan) {
    choice.ranked.push_back(RankPlan(model, plan, load));
  });
  if (choice.ranked.empty()) choice.ranked.push_back(RankPlan(model, {}, load));
  std::ranges::stable_sort(choice.ranked, [](const RankedPlan& a, const RankedPlan& b) {
    return a.prediction.tokens_per_second > b.prediction.tokens_per_second;
  });
  choice.reason = ExplainChoice(choice.ranked);
  return choice;
}

}  // namespace foretoken
