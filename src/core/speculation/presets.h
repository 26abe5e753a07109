#pragma once

#include <array>

#include "base/result.h"
#include "core/speculation/plan.h"

namespace foretoken {

inline constexpr std::array kSsdPresets = {
    SsdPreset::kSaguaro,   SsdPreset::kPearl,    SsdPreset::kAmusd, SsdPreset::kSpecBranch,
    SsdPreset::kSwiftSpec, SsdPreset::kMirrorSd, SsdPreset::kDsi};

/// The plan of mode kSsd that the preset stands for, with K = `lookahead` in [1, kMaxProposal].
/// All but kDsi draft just in time after a miss.
SpeculationPlan PresetPlan(SsdPreset preset, int lookahead);

}  // namespace foretoken
