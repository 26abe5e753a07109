#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "core/engine/engine.h"
#include "door/assembly/loaded_model.h"

namespace foretoken {

/// How thoroughly MakeEngine measures, and what it need not measure again.
struct Measuring {
  int sweeps = 1;  ///< How often each point is measured; more where noise matters.
  /// Where times are kept between runs (TimesCache); empty: nowhere.
  std::filesystem::path kept_in = {};
  /// Parts that are not empty are not measured again; times that `kept_in` has count more.
  MeasuredTimes known = {};
};

/// An engine over a loaded target that offers `modes`; the first one is that of requests without a
/// plan. For modes of kDraftModels their drafts, `drafts` in that order, are loaded here and made
/// to speak the target's tokens (FitDraft). Only the first one drafts on a device of its own.
/// Several engines may share a target as long as one thread steps them, one at a time.
Result<std::unique_ptr<Engine>> MakeEngine(std::span<const Mode> modes, const EngineConfig& options,
                                           LoadedModel* target,
                                           std::span<const DraftOptions> drafts,
                                           const Measuring& measuring = {});

/// A draft for `target` on a device of its own: the draft's cores, or where none were given as many
/// threads as the target's has, beside these. May run while an engine steps.
Result<std::shared_ptr<LoadedModel>> LoadDraftApart(LoadedModel* target, const DraftOptions& draft);

/// Engine::PrepareDraft, of an engine over this target.
Result<std::shared_ptr<NextDraft>> PrepareDraft(const Engine& engine, LoadedModel* target,
                                                const DraftOptions& draft);

/// The modes of an engine that is asked for `modes`, and where auto is one of them, those that it
/// chooses from too: everything that there is a draft and a device for, and staged where `stages`
/// are named.
std::vector<Mode> OfferedModes(std::span<const Mode> modes, std::span<const DraftOptions> drafts,
                               std::span<const DrafterId> stages, const Device& target);

/// The options of an engine that offers such modes: the first mode is that of requests without a
/// plan; there is a planner where plans may be open, and room for what that may plan.
EngineConfig OptionsFor(std::span<const Mode> offered, EngineConfig options,
                        const ModelConfig& target);

/// Whether some plan's speculation length depends on what rows cost.
bool NeedsRowTimes(std::span<const Mode> offered, const SpeculationPlan& plan);

}  // namespace foretoken
