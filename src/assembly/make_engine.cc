#include "assembly/make_engine.h"

#include <algorithm>
#include <optional>

#include "assembly/measure_times.h"
#include "assembly/offered_modes.h"
#include "assembly/speculator_process.h"
#include "assembly/times_cache.h"
#include "draft/registry.h"

namespace foretoken {
namespace {

struct Drafts {
  std::shared_ptr<LoadedModel> on_target;  // Drafts before a pass.
  std::unique_ptr<LoadedModel> apart;      // ... during it; null where another process does.
  ModelIdentity identity;
};

// The draft is opened here even if another process will draft with it: a bad one is then refused
// at once, in one sentence. Its weights are packed once, for other engines of the target too.
Result<Drafts> LoadDrafts(std::span<const Mode> offered, const LoadedModel& target,
                          const DraftSetup& setup, bool measured) {
  const auto drafts_at = [offered](Schedule schedule) {
    return std::ranges::any_of(
        offered, [schedule](Mode mode) { return NeedsDraft(mode) && mode.schedule == schedule; });
  };
  const bool before = drafts_at(Schedule::kBefore);
  const bool during = drafts_at(Schedule::kDuring);
  Drafts drafts;
  if (!before && !during) return drafts;
  FT_ASSIGN_OR_RETURN(const OpenedModel opened, OpenModel(setup.source));
  FT_RETURN_IF_ERROR(CheckPair(target, opened));
  drafts.identity = opened.identity;
  const auto load = [&](std::shared_ptr<Device> device) {
    return LoadModel(opened, std::move(device), setup.precision, target.draft_weights.get());
  };
  if (before) drafts.on_target = load(target.device);
  if (during && (measured || !setup.process)) {
    drafts.apart = load(std::make_shared<Device>(setup.cores));
  }
  return drafts;
}

Result<Proposers> MakeProposers(std::span<const Mode> offered, const EngineConfig& options,
                                int vocabulary, Drafts drafts, const DraftSetup& setup) {
  const LoadedModel* on_target = drafts.on_target.get();
  const DrafterParts parts{
      .vocabulary = vocabulary,
      .max_sequences = options.max_batch,
      .max_context = options.max_context,
      .draft = {drafts.on_target, on_target == nullptr ? nullptr : on_target->model.get()}};
  Proposers proposers;
  for (const Mode mode : offered) {
    if (mode.before()) {
      proposers.before[mode.drafter] = MakeDrafter(mode.drafter, parts);
    } else if (mode.during()) {
      const ConfigureMessage limits{.max_lookahead = options.max_lookahead,
                                    .max_nodes = options.max_nodes,
                                    .max_cache_budget = options.max_cache_budget,
                                    .max_sequences = options.max_batch,
                                    .max_context = options.max_context,
                                    .delay_us = setup.delay_us};
      FT_ASSIGN_OR_RETURN(proposers.speculator,
                          StartSpeculator(setup, drafts.identity, std::move(drafts.apart), limits));
    }
  }
  return proposers;
}

MeasuredTimes KeptOrMeasured(const std::optional<TimesCache>& cache, const EngineModels& models,
                             const TimesNeeded& needed, const MeasuredTimes& known) {
  if (!cache.has_value()) return MeasureTimes(models, needed, known);
  if (const auto kept = cache->Read(); kept.has_value()) return *kept;
  const MeasuredTimes times = MeasureTimes(models, needed);
  cache->Write(times);
  return times;
}

}  // namespace

Result<std::unique_ptr<Engine>> MakeEngine(std::span<const Mode> modes, const EngineConfig& wanted,
                                           LoadedModel* target, const DraftSetup& draft,
                                           const Measuring& measuring) {
  FT_CHECK(!modes.empty());
  for (const Mode mode : modes) {
    if (IndexOf(mode) < kModeCount) continue;
    return InvalidInput("a mode drafts at a time at which its drafter cannot: take one of kModes");
  }
  const std::vector<Mode> offered = OfferedModes(modes, draft, *target->device);
  const EngineConfig options = OptionsFor(offered, wanted, target->model->config());
  FT_ASSIGN_OR_RETURN(Drafts drafts,
                      LoadDrafts(offered, *target, draft, options.planner.has_value()));
  const EngineModels models{
      .target = target, .draft_on_target = drafts.on_target.get(), .draft = drafts.apart.get()};
  const TimesNeeded needed{.rows = NeedsRowTimes(offered, options.plan),
                           .costs = options.planner.has_value(),
                           .most_rows = options.max_batch * (1 + options.max_lookahead),
                           .sweeps = measuring.sweeps};
  std::optional<TimesCache> cache;
  if (!measuring.kept_in.empty() && (needed.rows || needed.costs)) {
    cache.emplace(measuring.kept_in, models, needed);
  }
  const MeasuredTimes times = KeptOrMeasured(cache, models, needed, measuring.known);
  FT_ASSIGN_OR_RETURN(Proposers proposers,
                      MakeProposers(offered, options, target->model->config().vocabulary,
                                    std::move(drafts), draft));
  FT_ASSIGN_OR_RETURN(auto engine,
                      CreateEngine(options, target->model.get(), target->device.get(),
                                   target->tokenizer.get(), std::move(proposers), times));
  if (cache.has_value()) {
    WhenClosed(*engine, [cache = *cache](const CostModel& learned, std::int64_t rounds) {
      cache.Refresh(learned, rounds);
    });
  }
  return engine;
}

Result<std::unique_ptr<Engine>> MakeEngine(Mode mode, const EngineConfig& options,
                                           LoadedModel* target, const DraftSetup& draft,
                                           const Measuring& measuring) {
  return MakeEngine(std::span(&mode, 1), options, target, draft, measuring);
}

}  // namespace foretoken
