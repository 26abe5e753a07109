#pragma once

#include <array>
#include <string_view>

#include "base/result.h"
#include "speculation/plan.h"

namespace foretoken {

/// Parallel speculation as published, each as settings of the one speculator (docs/ssd.md says what
/// of a method that does not capture).
enum class SsdPreset : std::uint8_t {
  kSaguaro,     ///< F bonus tokens at every node of a chain.
  kPearl,       ///< Only the outcome in which all tokens are accepted, with one bonus token.
  kAmusd,       ///< The same; the methods differ in what is no setting.
  kSpecBranch,  ///< One branching point: several bonus tokens behind the last proposed one.
  kSwiftSpec,  ///< A token tree, re-rooted at the outcome: one bonus token at every node of a tree.
};
inline constexpr std::array kSsdPresets = {SsdPreset::kSaguaro, SsdPreset::kPearl,
                                           SsdPreset::kAmusd, SsdPreset::kSpecBranch,
                                           SsdPreset::kSwiftSpec};

std::string_view SsdPresetName(SsdPreset preset);
Result<SsdPreset> ParseSsdPreset(std::string_view name);

/// The plan of mode kSsd that the preset stands for, with K = `lookahead` in [1, kMaxProposal].
/// All of them draft just in time after a miss.
SpeculationPlan PresetPlan(SsdPreset preset, int lookahead);

}  // namespace foretoken
