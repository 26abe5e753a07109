#include "apps/lab/plan/plan_simulate_runs.h"

#include <algorithm>

#include "core/prediction/plan_search.h"

namespace foretoken {
namespace {

// What happens after a miss.
struct MissRule {
  Fallback fallback = Fallback::kNone;
  JitWait wait = JitWait::kNobody;
};

Result<std::vector<MissRule>> MissRules(const SimulationSetting& setting,
                                        const SimulatedMode& mode) {
  if (!mode.mode.during()) return std::vector<MissRule>(1);
  const auto known = [&setting](Fallback fallback) {
    const ProposerModel* backup = setting.model.proposer(fallback);
    return backup == nullptr || backup->measured();
  };
  std::vector<MissRule> rules;
  if (mode.whole_cache) {
    rules = {{Fallback::kJit, JitWait::kBatch}, {Fallback::kRandom}, {Fallback::kNgram}};
  } else {
    rules = {{Fallback::kNone},
             {Fallback::kJit, JitWait::kNobody},
             {Fallback::kJit, JitWait::kSequence},
             {Fallback::kNgram}};
  }
  if (!setting.fallback) {
    std::erase_if(rules, [&](const MissRule& rule) { return !known(rule.fallback); });
    return rules;
  }
  if (!known(*setting.fallback)) {
    if (*setting.fallback == Fallback::kNgram) {
      return InvalidInput("--fallback ngram needs its acceptance: give --ngram-acceptance");
    }
    return Invalid("--fallback {} cannot be simulated: there are no numbers of it",
                   FallbackName(*setting.fallback));
  }
  std::erase_if(rules, [&](const MissRule& rule) { return rule.fallback != *setting.fallback; });
  if (rules.empty()) rules.push_back({*setting.fallback});
  return rules;
}

std::vector<SpeculationPlan> Shapes(const SimulationSetting& setting, Mode mode) {
  if (mode == Mode::kAr) return {{.mode = Mode::kAr}};
  std::vector<SpeculationPlan> plans;
  for (const int lookahead : setting.lookaheads) {
    if (mode == Mode::kSd) {
      plans.push_back({.mode = Mode::kSd, .lookahead = lookahead});
    } else if (setting.fanout) {
      const FanoutShape shape = UniformFanout(*setting.fanout, lookahead);
      plans.push_back(
          {.mode = Mode::kSsd, .lookahead = lookahead, .primary = shape, .after_fallback = shape});
    } else {
      for (const int mean : setting.mean_fanouts) {
        plans.push_back(PlanSsd(setting.model, lookahead, mean * (lookahead + 1), Fallback::kNone));
      }
    }
  }
  return plans;
}

SimulatorOptions SimulatorOptionsFor(const SimulationSetting& setting, const SimulatedMode& mode,
                                     const Deployment& deployment, SpeculationPlan plan,
                                     MissRule rule) {
  plan.fallback = rule.fallback;
  SimulatorOptions options =
      SimulatorFor(setting.model, plan, {.batch = deployment.batch, .context = setting.context});
  options.jit_wait = rule.wait;
  options.whole_cache = mode.whole_cache;
  if (options.whole_cache) options.draft_rows_per_pass = 0;  // The paper's has no limit.
  options.targets = deployment.targets;
  options.draft_devices = deployment.draft_devices;
  options.channel_us = setting.channel_us;
  options.seed = setting.seed;
  return options;
}

SimulatorResult RunFor(SimulatorOptions* options, int rounds) {
  constexpr int kLeastPasses = 24;
  options->passes = std::max(kLeastPasses, rounds / options->batch);
  options->warmup = kLeastPasses / 2;
  return Simulate(*options);
}

}  // namespace

Result<SimulatedRun> RunBest(const SimulationSetting& setting, const SimulatedMode& mode,
                             const Deployment& deployment) {
  constexpr int kSearchRounds = 600;
  FT_ASSIGN_OR_RETURN(const std::vector<MissRule> rules, MissRules(setting, mode));
  std::vector<SimulatorOptions> candidates;
  for (const SpeculationPlan& plan : Shapes(setting, mode.mode)) {
    for (const MissRule& rule : rules) {
      candidates.push_back(SimulatorOptionsFor(setting, mode, deployment, plan, rule));
      FT_RETURN_IF_ERROR(CheckSimulatorOptions(candidates.back()));
    }
  }
  SimulatedRun run{.mode = mode.name, .options = candidates.front()};
  double best = 0;
  for (SimulatorOptions& candidate : candidates) {
    if (candidates.size() == 1) break;
    const double speed = RunFor(&candidate, kSearchRounds).tokens_per_second();
    if (speed <= best) continue;
    best = speed;
    run.options = candidate;
  }
  run.result = RunFor(&run.options, setting.rounds);
  run.devices = deployment.targets * setting.target_devices + run.result.draft_devices;
  return run;
}

}  // namespace foretoken
