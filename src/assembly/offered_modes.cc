#include "assembly/offered_modes.h"

#include <algorithm>

namespace foretoken {
namespace {

constexpr int kPlannedCacheBudget = 64;

bool Contains(std::span<const Mode> modes, Mode mode) {
  return std::ranges::find(modes, mode) != modes.end();
}

// What plans of mode auto may need beyond the engine's own.
void MakeRoomForAuto(EngineConfig* options) {
  const PlanLimits& limits = options->planner->limits;
  const SpeculationPlan& plan = options->plan;
  if (options->max_lookahead == 0) {
    options->max_lookahead = std::max(plan.lookahead, limits.max_lookahead);
  }
  if (options->max_cache_budget == 0) {
    options->max_cache_budget = std::max({kPlannedCacheBudget, limits.cache_budget,
                                          plan.primary.budget(), plan.after_fallback.budget()});
  }
}

// Plans what the engine, whose options are complete, can follow.
void LimitPlans(std::span<const Mode> offered, const EngineConfig& options, PlanLimits* limits) {
  limits->modes = {};
  for (const Mode mode : offered) {
    if (!mode.planned()) limits->modes.push_back(mode);
  }
  if (options.plan.fallback != Fallback::kRetrieval && !Contains(offered, Mode::kSssd)) {
    const auto end =
        std::remove(limits->fallbacks.begin(), limits->fallbacks.end(), Fallback::kRetrieval);
    limits->fallbacks.resize(static_cast<std::size_t>(end - limits->fallbacks.begin()));
  }
  limits->max_lookahead = std::min(limits->max_lookahead, options.max_lookahead);
  limits->max_cache_budget = std::min(limits->max_cache_budget, options.max_cache_budget);
}

}  // namespace

std::vector<Mode> OfferedModes(std::span<const Mode> modes, const DraftSetup& draft,
                               const Device& target) {
  std::vector<Mode> offered(modes.begin(), modes.end());
  if (std::ranges::none_of(offered, &Mode::planned)) return offered;
  const auto add = [&offered](auto is_wanted) {
    for (const Mode mode : kModes) {
      const bool baseline = mode.drafts() && InfoOf(mode.drafter).baseline;
      if (!baseline && is_wanted(mode) && !Contains(offered, mode)) offered.push_back(mode);
    }
  };
  add([](Mode mode) {
    return !mode.drafts() || InfoOf(mode.drafter).needs == DrafterNeeds::kText;
  });
  const bool apart = !draft.cores.empty() && !target.Overlaps(draft.cores);
  if (!draft.source.empty()) {
    add([apart](Mode mode) { return NeedsDraft(mode) && (mode.before() || apart); });
  }
  return offered;
}

EngineConfig OptionsFor(std::span<const Mode> offered, EngineConfig options,
                        const ModelConfig& target) {
  options.plan.mode = offered.front();
  const bool chooses = std::ranges::any_of(offered, &Mode::planned);
  if (!chooses && !options.plan.open()) {
    options.planner.reset();
  } else if (!options.planner.has_value()) {
    options.planner.emplace();
  }
  if (chooses) MakeRoomForAuto(&options);
  options = CompleteOptions(options, target);
  if (options.planner.has_value()) LimitPlans(offered, options, &options.planner->limits);
  return options;
}

bool NeedsRowTimes(std::span<const Mode> offered, const SpeculationPlan& plan) {
  const bool falls_back = std::ranges::any_of(offered, &Mode::during) &&
                          (plan.fallback == Fallback::kRetrieval || Contains(offered, Mode::kSssd));
  if (plan.speculation_length == 0) return falls_back;
  return plan.speculation_length < 0 && (falls_back || std::ranges::any_of(offered, Retrieves));
}

}  // namespace foretoken
