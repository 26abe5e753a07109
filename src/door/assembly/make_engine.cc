#include "door/assembly/make_engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "core/draft/registry.h"
#include "core/engine/draft_exchange.h"
#include "core/engine/rules.h"
#include "core/model/judge/judge_head.h"
#include "core/model/self/self_draft.h"
#include "core/speculation/lossy.h"
#include "door/assembly/members.h"
#include "door/assembly/open_draft.h"
#include "door/assembly/speculator_process.h"
#include "door/assembly/times.h"
#include "text/tokenizer/encode_behind.h"

namespace foretoken {
namespace {

constexpr int kPlannedCacheBudget = 64;
constexpr Mode kStagedMode{Schedule::kBefore, DrafterId::kStaged};
constexpr Mode kEnsembleMode{Schedule::kBefore, DrafterId::kEnsemble};
constexpr std::string_view kNotDuring =
    "mode ssd prepares for outcomes in the target's tokens, and this draft drafts by text, in "
    "tokens of its own: take mode sd, or a draft of the target's family";

bool Contains(std::span<const Mode> modes, Mode mode) {
  return std::ranges::find(modes, mode) != modes.end();
}

// Plans what the engine, whose sizes these are, can follow.
void LimitPlans(std::span<const Mode> offered, const SpeculationPlan& plan,
                const EngineSizes& sizes, PlanLimits* limits) {
  limits->modes = {};
  for (const Mode mode : offered) {
    if (!mode.planned()) limits->modes.push_back(mode);
  }
  if (plan.fallback != Fallback::kRetrieval && !Contains(offered, Mode::kSssd)) {
    const auto end =
        std::remove(limits->fallbacks.begin(), limits->fallbacks.end(), Fallback::kRetrieval);
    limits->fallbacks.resize(end - limits->fallbacks.begin());
  }
  limits->max_lookahead = std::min(limits->max_lookahead, sizes.lookahead);
  limits->max_cache_budget = std::min(limits->max_cache_budget, sizes.cache_budget);
}

Status CheckDraft(const DraftOptions& draft, bool during) {
  if (draft.source.experts == ExpertsPlace::kFile) {
    return InvalidInput("the experts of a draft cannot stay in its file: keep them in memory");
  }
  if (during && draft.process && draft.source.path.empty() &&
      IsSelfDraft(draft.source.own_drafter)) {
    return Invalid(
        "self:{}: random weights lie in no file from which the draft's process could take them: "
        "draft in a thread",
        draft.source.own_drafter);
  }
  return {};
}

Result<OpenedModel> OpenDraftModel(const LoadedModel& target, const DraftOptions& draft,
                                   std::vector<std::string>* notices) {
  return OpenDraftFor(
      {.config = target.model->config(), .tokenizer = target.tokenizer, .path = target.path},
      draft.source, draft.by_text, draft.window, notices);
}

// With the target's own weights where the draft is made of them.
Result<std::unique_ptr<LoadedModel>> LoadDraftModel(const OpenedModel& opened,
                                                    const DraftOptions& draft,
                                                    const LoadedModel& target,
                                                    std::shared_ptr<Device> device,
                                                    PackedWeights* packed) {
  const Numerics numerics = NumericsFor(opened, draft.precision, draft.kv);
  const auto shared = SharedWeights(opened, numerics.precision, target);
  PackedWeights own{opened.identity, numerics.precision, shared};
  return LoadModel(opened, std::move(device), numerics, shared == nullptr ? packed : &own,
                   draft.progress);
}

TapShape TapsOfDraft(const ModelConfig& draft) {
  return {.points = draft.feature.points, .hidden = draft.feature.tapped};
}

// Whether the draft's layers are the target's and keep what those keep, in one form on one device:
// then the target has the draft's keys and values of every position that it has computed. What
// recurrent layers remember passes move on in place, so that it is the target's alone.
bool IsOnTargetKv(const OpenedModel& opened, const LoadedModel& draft, const LoadedModel& target) {
  if (draft.device != target.device) return false;
  if (draft.backend->kv_format() != target.backend->kv_format()) return false;
  if (SharedWeights(opened, draft.backend->precision(), target) == nullptr) return false;
  const ModelConfig& whole = target.model->config();
  for (std::size_t i = 0; i < whole.layers.size(); ++i) {
    if (whole.layers[i].is_recurrent()) return false;
    const AttentionSpec& attention = opened.config.layers[i].attention;
    if (attention.heads > 0 && attention.window != whole.layers[i].attention.window) return false;
  }
  return true;
}

// One draft, loaded where its modes need it.
struct Draft {
  bool by_text = false;                    // Drafts before a pass only.
  std::shared_ptr<LoadedModel> on_target;  // Drafts before a pass.
  bool on_target_kv = false;               // `on_target` reads what the target keeps.
  SpeculatorDraft apart;                   // Drafts during a pass.
  TapShape taps;                           // What it reads of the target.
};

// The draft is opened here even if another process will draft with it: a bad one is then refused
// at once, in one sentence. Its weights are packed once, for other engines of the target too.
// One that drafts by text is refused where it is `asked` to draft during passes.
Result<Draft> LoadDraft(DrafterId id, std::span<const Mode> asked, std::span<const Mode> offered,
                        const MembersById& members, const LoadedModel& target,
                        const DraftOptions& setup, const EngineConfig& options) {
  const bool before = Contains(offered, {Schedule::kBefore, id}) || IsMember(id, members);
  const bool during = Contains(offered, {Schedule::kDuring, id});
  Draft draft;
  if (!before && !during) return draft;
  FT_RETURN_IF_ERROR(CheckDraft(setup, during));
  std::vector<std::string> notices;
  FT_ASSIGN_OR_RETURN(const OpenedModel opened, OpenDraftModel(target, setup, &notices));
  draft.by_text = opened.text != nullptr;
  if (draft.by_text && Contains(asked, {Schedule::kDuring, id})) {
    return InvalidInput(std::string(kNotDuring));
  }
  PackedWeights* const packed = &(*target.draft_weights)[id];
  if (options.log && packed->identity != opened.identity) {
    for (const std::string& notice : notices) options.log(notice);
    for (const std::string& sentence : NotUsed(opened)) {
      options.log(fmt::format("{}: {}", setup.source.path, sentence));
    }
  }
  if (std::ranges::find(members[DrafterId::kStaged], id) != members[DrafterId::kStaged].end()) {
    FT_RETURN_IF_ERROR(CheckStage(id, opened.config, draft.by_text));
  }
  draft.apart.identity = opened.identity;
  draft.taps = TapsOfDraft(opened.config);
  if (NeedsTargetFiles(opened.config, opened.translation.get())) draft.apart.target = target.path;
  const auto load = [&](std::shared_ptr<Device> device) {
    return LoadDraftModel(opened, setup, target, std::move(device), packed);
  };
  if (before) {
    FT_ASSIGN_OR_RETURN(draft.on_target, load(target.device));
    draft.on_target_kv = !draft.by_text && IsOnTargetKv(opened, *draft.on_target, target);
  }
  if (during && !draft.by_text && (options.planner.has_value() || !setup.process)) {
    FT_ASSIGN_OR_RETURN(draft.apart.loaded, load(std::make_shared<Device>(setup.cores)));
  }
  return draft;
}

Result<ByDrafter<Draft>> LoadDrafts(std::span<const Mode> asked, std::span<const Mode> offered,
                                    const MembersById& members, const LoadedModel& target,
                                    std::span<const DraftOptions> setups,
                                    const EngineConfig& options) {
  for (const Mode mode : offered) {
    if (!NeedsDraft(mode) || DraftIndex(mode.drafter) < setups.size()) continue;
    return Invalid("mode {} drafts with draft model {}, and there {} {}", ModeName(mode),
                   DraftIndex(mode.drafter) + 1, setups.size() == 1 ? "is" : "are", setups.size());
  }
  ByDrafter<Draft> drafts;
  for (std::size_t i = 0; i < std::min(setups.size(), kDraftModels.size()); ++i) {
    FT_ASSIGN_OR_RETURN(drafts[kDraftModels[i]], LoadDraft(kDraftModels[i], asked, offered, members,
                                                           target, setups[i], options));
  }
  return drafts;
}

ConfigureMessage SpeculatorLimits(const EngineConfig& options, const LoadedModel& target) {
  const EngineSizes sizes = SizesFor(options, target.model->config());
  return {.max_lookahead = sizes.lookahead,
          .max_nodes = sizes.nodes,
          .max_cache_budget = sizes.cache_budget,
          .max_sequences = options.max_batch,
          .max_context = sizes.context,
          .vocabulary = target.model->config().vocabulary,
          .delay_us = options.speculator_delay_us};
}

DrafterParts PartsWith(std::shared_ptr<LoadedModel> draft, const EngineConfig& options,
                       const LoadedModel& target) {
  Model* const model = draft == nullptr ? nullptr : draft->model.get();
  auto text = draft == nullptr ? nullptr : draft->text;
  DrafterParts parts{.vocabulary = target.model->config().vocabulary,
                     .max_sequences = options.max_batch,
                     .max_context = SizesFor(options, target.model->config()).context,
                     .draft = {std::move(draft), model},
                     .text = std::move(text),
                     .backend = target.backend.get()};
  if (target.tokenizer != nullptr) {
    parts.bytes_of = [tokenizer = target.tokenizer](Token token) {
      return tokenizer->TokenBytes(token);
    };
    parts.tokens_of = [tokenizer = target.tokenizer](std::string_view written) {
      return EncodeBehind(*tokenizer, written);
    };
  }
  return parts;
}

// Each with its own draft; `taps` becomes what all of them read.
std::vector<DrafterMember> MakeMembers(std::span<const DrafterId> ids,
                                       const ByDrafter<Draft>& drafts, TapShape* taps) {
  std::vector<DrafterMember> members;
  for (const DrafterId id : ids) {
    DrafterMember& member = members.emplace_back(DrafterMember{.id = id});
    if (!IsDraftModel(id)) continue;
    const Draft& draft = drafts[id];
    member.draft = {draft.on_target, draft.on_target->model.get()};
    member.text = draft.on_target->text;
    member.on_target_kv = draft.on_target_kv;
    member.taps = AddTaps(draft.taps, taps);
  }
  return members;
}

Result<Proposers> MakeProposers(std::span<const Mode> offered, const MembersById& members,
                                const EngineConfig& options, const LoadedModel& target,
                                ByDrafter<Draft> drafts, std::span<const DraftOptions> setups) {
  Proposers proposers;
  for (const DrafterId id : kDraftModels) proposers.taps[id] = drafts[id].taps;
  for (const Mode mode : offered) {
    Draft& draft = drafts[mode.drafter];
    if (mode.before()) {
      DrafterParts parts = PartsWith(draft.on_target, options, target);
      parts.on_target_kv = draft.on_target_kv;
      parts.members = MakeMembers(members[mode.drafter], drafts, &proposers.taps[mode.drafter]);
      proposers.before[mode.drafter] = MakeDrafter(mode.drafter, parts);
    } else if (mode.during()) {
      FT_ASSIGN_OR_RETURN(proposers.speculator,
                          StartSpeculator(setups[DraftIndex(mode.drafter)], std::move(draft.apart),
                                          SpeculatorLimits(options, target), options.log));
    }
  }
  return proposers;
}

// The head of a rule that has one, else null.
Result<std::shared_ptr<const JudgeHead>> OpenJudge(const LossyRule& rule,
                                                   const LoadedModel& target) {
  FT_RETURN_IF_ERROR(CheckLossyRule(rule));
  if (rule.kind != Lossy::kJudge) return std::shared_ptr<const JudgeHead>();
  JudgedTarget judged{.hidden = target.model->config().hidden, .tokenizer = {}};
  if (target.tokenizer != nullptr) judged.tokenizer = target.tokenizer->fingerprint();
  FT_ASSIGN_OR_RETURN(JudgeHead head, JudgeHead::Open(rule.judge, judged));
  return std::make_shared<const JudgeHead>(std::move(head));
}

}  // namespace

std::vector<Mode> OfferedModes(std::span<const Mode> modes, std::span<const DraftOptions> drafts,
                               std::span<const DrafterId> stages, const Device& target) {
  std::vector<Mode> offered(modes.begin(), modes.end());
  if (std::ranges::none_of(offered, &Mode::planned)) return offered;
  const auto add = [&offered](auto is_wanted) {
    for (const Mode mode : kModes) {
      const bool baseline = mode.drafts() && InfoOf(mode.drafter).baseline;
      if (!baseline && is_wanted(mode) && !Contains(offered, mode)) offered.push_back(mode);
    }
  };
  add([](Mode mode) {
    return !mode.drafts() || InfoOf(mode.drafter).needs == DrafterNeeds::kText ||
           mode == kEnsembleMode;
  });
  if (drafts.empty() || drafts[0].source.empty()) return offered;
  // Its drafts may have keys and values of their own beside mode sd's: only where it is wanted.
  if (!stages.empty()) add([](Mode mode) { return mode == kStagedMode; });
  const bool apart = !drafts[0].cores.empty() && !target.Overlaps(drafts[0].cores);
  add([&](Mode mode) {
    return NeedsDraft(mode) && DraftIndex(mode.drafter) < drafts.size() && (mode.before() || apart);
  });
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
  if (chooses) {  // Plans of mode auto may need more than the engine's own.
    const PlanLimits& limits = options.planner->limits;
    const SpeculationPlan& plan = options.plan;
    if (!options.max_lookahead) {
      options.max_lookahead = std::max(plan.lookahead, limits.max_lookahead);
    }
    if (!options.max_cache_budget) {
      options.max_cache_budget = std::max({kPlannedCacheBudget, limits.cache_budget.value_or(0),
                                           plan.primary.budget(), plan.after_fallback.budget()});
    }
  }
  // Requests may ask for as large a window as there can be.
  if (std::ranges::any_of(offered, HasWindow)) options.max_nodes = kMaxProposal;
  if (options.planner.has_value()) {
    LimitPlans(offered, options.plan, SizesFor(options, target), &options.planner->limits);
  }
  return options;
}

bool NeedsRowTimes(std::span<const Mode> offered, const SpeculationPlan& plan) {
  if (std::ranges::any_of(offered, &Mode::planned)) return true;  // It plans what rows are worth.
  const bool falls_back = std::ranges::any_of(offered, &Mode::during) &&
                          (plan.fallback == Fallback::kRetrieval || Contains(offered, Mode::kSssd));
  if (!plan.speculation_length.has_value()) return falls_back;
  return plan.measures_length() && (falls_back || std::ranges::any_of(offered, Retrieves));
}

Result<std::unique_ptr<Engine>> MakeEngine(std::span<const Mode> modes, const EngineConfig& wanted,
                                           LoadedModel* target,
                                           std::span<const DraftOptions> setups,
                                           const Measuring& measuring) {
  FT_CHECK(!modes.empty());
  for (const Mode mode : modes) {
    if (IndexOf(mode) < kModeCount) continue;
    return InvalidInput("a mode drafts at a time at which its drafter cannot: take one of kModes");
  }
  std::vector<Mode> offered = OfferedModes(modes, setups, wanted.stages, *target->device);
  EngineConfig options = OptionsFor(offered, wanted, target->model->config());
  // The first one may be missing (OpenWith).
  const std::size_t given = setups.empty() || setups[0].source.empty() ? 0 : setups.size();
  FT_ASSIGN_OR_RETURN(const MembersById members, MembersOf(modes, offered, options, given));
  FT_ASSIGN_OR_RETURN(ByDrafter<Draft> drafts,
                      LoadDrafts(modes, offered, members, *target, setups, options));
  if (drafts[DrafterId::kModel].by_text) {
    std::erase(offered, Mode::kSsd);
    options = OptionsFor(offered, wanted, target->model->config());
  }
  const std::vector<DrafterId>& ensemble = members[kEnsembleMode.drafter];
  if (options.planner.has_value() && !ensemble.empty() &&
      std::ranges::none_of(ensemble, IsDraftModel)) {
    options.planner->shadow_drafter = kEnsembleMode.drafter;
  }
  FT_ASSIGN_OR_RETURN(options.judge, OpenJudge(options.lossy, *target));
  EngineModels models{.target = target, .drafts = {}};
  for (const DrafterId id : kDraftModels) {
    models.drafts[id] = {.apart = drafts[id].apart.loaded.get(),
                         .on_target = drafts[id].on_target.get()};
  }
  const EngineSizes sizes = SizesFor(options, target->model->config());
  const TimesNeeded needed{.rows = NeedsRowTimes(offered, options.plan),
                           .costs = options.planner.has_value(),
                           .context = sizes.context,
                           .most_rows = options.max_batch * (1 + sizes.lookahead),
                           .sweeps = measuring.sweeps};
  const TimesCache cache(measuring.kept_in, models, needed);
  std::optional<MeasuredTimes> times = cache.Read();
  if (!times.has_value()) {
    times = MeasureTimes(models, needed, measuring.known);
    cache.Write(*times);
  }
  if (Contains(offered, kStagedMode)) {
    // Until it is seen how much the draft is helped, as if it were not.
    const DrafterId first = members[kStagedMode.drafter].front();
    const DraftTimes& alone = times->costs.drafts[first];
    times->costs.drafts[kStagedMode.drafter] = {
        .apart = {}, .on_target = alone.on_target, .pass = alone.pass, .tokens_of = first};
  }
  options.when_closed = [cache](const CostModel& learned, std::int64_t rounds) {
    cache.Refresh(learned, rounds);
  };
  FT_ASSIGN_OR_RETURN(Proposers proposers,
                      MakeProposers(offered, members, options, *target, std::move(drafts), setups));
  return CreateEngine(options, target->model.get(), target->device.get(), target->tokenizer.get(),
                      std::move(proposers), *std::move(times));
}

Result<std::shared_ptr<LoadedModel>> LoadDraftApart(LoadedModel* target,
                                                    const DraftOptions& draft) {
  FT_RETURN_IF_ERROR(CheckDraft(draft, /*during=*/true));
  FT_ASSIGN_OR_RETURN(const OpenedModel opened, OpenDraftModel(*target, draft, nullptr));
  if (opened.text != nullptr) {
    return Invalid(
        "{}: drafts by text, and a draft that takes another's place has the target's tokens",
        draft.source.path);
  }
  const CoreSet& cores = draft.cores.empty() ? target->device->pool().cores() : draft.cores;
  FT_ASSIGN_OR_RETURN(auto loaded, LoadDraftModel(opened, draft, *target,
                                                  std::make_shared<Device>(cores), nullptr));
  return std::shared_ptr<LoadedModel>(std::move(loaded));
}

Result<std::shared_ptr<NextDraft>> PrepareDraft(const Engine& engine, LoadedModel* target,
                                                const DraftOptions& draft) {
  const EngineConfig& options = ConfigOf(engine);
  const bool before = engine.Offers(Mode::kSd);
  const bool during = engine.Offers(Mode::kSsd);
  if (!before && !during) return InvalidInput("the engine has no mode that drafts with a model");
  // The engine's thread owns the target's device: weights are packed on another.
  FT_ASSIGN_OR_RETURN(const auto loaded, LoadDraftApart(target, draft));
  auto next = std::make_shared<DraftExchange>();
  next->taps = TapsOfDraft(loaded->model->config());
  const std::vector<int>& wanted = next->taps.points;
  const std::vector<int>& kept = TapsOf(engine).points;
  if (wanted.size() > kept.size() || !std::equal(wanted.begin(), wanted.end(), kept.begin())) {
    return Invalid("{}: reads other states of the target than the draft in use, whose are kept",
                   draft.source.path);
  }
  if (before) {
    next->before = MakeDrafter(DrafterId::kModel,
                               PartsWith(OnDevice(*loaded, target->device), options, *target));
  }
  if (during) {
    SpeculatorDraft apart{.identity = loaded->identity, .loaded = loaded, .target = {}};
    if (NeedsTargetFiles(loaded->model->config(), loaded->translation.get())) {
      apart.target = target->path;
    }
    FT_ASSIGN_OR_RETURN(
        next->during,
        StartSpeculator(draft, std::move(apart), SpeculatorLimits(options, *target), options.log));
  }
  return std::shared_ptr<NextDraft>(std::move(next));
}

}  // namespace foretoken
