#include "assembly/make_engine.h"

#include <algorithm>
#include <optional>

#include "assembly/measure_times.h"
#include "assembly/offered_modes.h"
#include "assembly/speculator_process.h"
#include "assembly/times_cache.h"
#include "draft/model/model_drafter.h"
#include "draft/rest/rest_drafter.h"
#include "draft/retrieval/retrieval_drafter.h"
#include "draft/trie/trie_drafter.h"

namespace foretoken {
namespace {

// SD's drafter with the model it owns, on the target's device.
class OwningDrafter : public Drafter {
 public:
  OwningDrafter(std::unique_ptr<LoadedModel> draft, int max_batch, int max_context)
      : draft_(std::move(draft)), drafter_(draft_->model.get(), max_batch, max_context) {}
  void Propose(std::span<DraftContext> contexts) override { drafter_.Propose(contexts); }
  void Forget(SequenceId sequence) override { drafter_.Forget(sequence); }

 private:
  std::unique_ptr<LoadedModel> draft_;
  ModelDrafter drafter_;
};

struct Drafts {
  std::unique_ptr<LoadedModel> on_target;  // SD's.
  std::unique_ptr<LoadedModel> apart;      // SSD's; null where only another process needs it.
  ModelIdentity identity;
};

// The draft is opened here even if another process will draft with it: a bad one is then refused
// at once, in one sentence. Its weights are packed once.
Result<Drafts> LoadDrafts(std::span<const Mode> offered, const LoadedModel& target,
                          const DraftSetup& setup, bool measured) {
  const auto offers = [offered](Mode mode) {
    return std::ranges::find(offered, mode) != offered.end();
  };
  Drafts drafts;
  if (!offers(Mode::kSd) && !offers(Mode::kSsd)) return drafts;
  FT_ASSIGN_OR_RETURN(const OpenedModel opened, OpenModel(setup.source));
  FT_RETURN_IF_ERROR(CheckPair(target, opened));
  drafts.identity = opened.identity;
  if (offers(Mode::kSd)) drafts.on_target = LoadModel(opened, target.device, setup.precision);
  if (offers(Mode::kSsd) && (measured || !setup.process)) {
    auto device = std::make_shared<Device>(setup.cores);
    drafts.apart = drafts.on_target != nullptr
                       ? OnDevice(*drafts.on_target, std::move(device))
                       : LoadModel(opened, std::move(device), setup.precision);
  }
  return drafts;
}

Result<Proposers> MakeProposers(std::span<const Mode> offered, const EngineConfig& options,
                                Drafts drafts, const DraftSetup& setup) {
  Proposers proposers;
  for (const Mode mode : offered) {
    if (mode == Mode::kSd) {
      proposers.of(mode) = std::make_unique<OwningDrafter>(std::move(drafts.on_target),
                                                           options.max_batch, options.max_context);
    } else if (mode == Mode::kSsd) {
      const ConfigureMessage limits{.max_lookahead = options.max_lookahead,
                                    .max_nodes = options.max_nodes,
                                    .max_cache_budget = options.max_cache_budget,
                                    .max_sequences = options.max_batch,
                                    .max_context = options.max_context,
                                    .delay_us = setup.delay_us};
      FT_ASSIGN_OR_RETURN(proposers.speculator,
                          StartSpeculator(setup, drafts.identity, std::move(drafts.apart), limits));
    } else if (mode == Mode::kSssd) {
      proposers.of(mode) = std::make_unique<RetrievalDrafter>();
    } else if (mode == Mode::kRest) {
      proposers.of(mode) = std::make_unique<RestDrafter>();
    } else if (mode == Mode::kTrie) {
      proposers.of(mode) = std::make_unique<TrieDrafter>();
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
                      MakeProposers(offered, options, std::move(drafts), draft));
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
