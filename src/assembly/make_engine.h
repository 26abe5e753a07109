#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "assembly/draft_setup.h"
#include "assembly/loaded_model.h"
#include "base/result.h"
#include "engine/engine.h"

namespace foretoken {

/// What MakeEngine need not measure, and how thoroughly it measures the rest.
struct Measuring {
  MeasuredTimes known;  ///< Those of another engine with the same models, say.
  int sweeps = 1;       ///< How often each point is measured; more where noise matters.
  /// Where times are kept between runs (TimesCache), in place of `known`; empty: nowhere.
  std::filesystem::path kept_in;
};

/// An engine over a loaded target that offers `modes`; the first one is that of requests without a
/// plan. For SD and SSD the draft is loaded here; a draft whose vocabulary differs from the
/// target's is refused with the first differing token named. Several engines may share a target as
/// long as one thread steps them, one at a time.
Result<std::unique_ptr<Engine>> MakeEngine(std::span<const Mode> modes, const EngineConfig& options,
                                           LoadedModel* target, const DraftSetup& draft,
                                           const Measuring& measuring = {});

/// ... of one mode.
Result<std::unique_ptr<Engine>> MakeEngine(Mode mode, const EngineConfig& options,
                                           LoadedModel* target, const DraftSetup& draft,
                                           const Measuring& measuring = {});

}  // namespace foretoken
