#pragma once

#include <span>
#include <vector>

#include "assembly/draft_setup.h"
#include "engine/engine.h"

namespace foretoken {

/// The modes of an engine that is asked for `modes`, and where auto is one of them, those that it
/// chooses from too: everything that there is a draft and a device for.
std::vector<Mode> OfferedModes(std::span<const Mode> modes, const DraftSetup& draft,
                               const Device& target);

/// The options of an engine that offers such modes: complete, the first mode being that of requests
/// without a plan, with a planner where plans may be open, and with room for what that may plan.
EngineConfig OptionsFor(std::span<const Mode> offered, EngineConfig options,
                        const ModelConfig& target);

/// Whether some plan's speculation length depends on what rows cost.
bool NeedsRowTimes(std::span<const Mode> offered, const SpeculationPlan& plan);

}  // namespace foretoken
