#include "speculation/presets.h"

#include <fmt/format.h>

#include <string>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr int kTreeWidth = 3;

// Bonus tokens behind the last proposed token only.
FanoutShape OnlyAtTheEnd(int fanout, int lookahead) {
  FanoutShape shape = UniformFanout(0, lookahead);
  shape.at.back() = static_cast<std::uint8_t>(fanout);
  return shape;
}

FanoutShape PresetFanout(SsdPreset preset, int lookahead) {
  switch (preset) {
    case SsdPreset::kSaguaro:
      return UniformFanout(kDefaultFanout, lookahead);
    case SsdPreset::kPearl:
    case SsdPreset::kAmusd:
      return OnlyAtTheEnd(1, lookahead);
    case SsdPreset::kSpecBranch:
      return OnlyAtTheEnd(kDefaultFanout, lookahead);
    case SsdPreset::kSwiftSpec:
      return UniformFanout(1, lookahead);
  }
  FT_CHECK(false, "preset {}", static_cast<int>(preset));
}

}  // namespace

std::string_view SsdPresetName(SsdPreset preset) {
  constexpr std::array<std::string_view, kSsdPresets.size()> kNames = {"saguaro", "pearl", "amusd",
                                                                       "specbranch", "swiftspec"};
  return kNames[static_cast<std::size_t>(preset)];
}

Result<SsdPreset> ParseSsdPreset(std::string_view name) {
  std::string known;
  for (const SsdPreset preset : kSsdPresets) {
    if (name == SsdPresetName(preset)) return preset;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", SsdPresetName(preset));
  }
  return InvalidInput(fmt::format("'{}' is not an SSD preset: choose one of {}", name, known));
}

SpeculationPlan PresetPlan(SsdPreset preset, int lookahead) {
  SpeculationPlan plan{.mode = Mode::kSsd, .lookahead = lookahead, .fallback = Fallback::kJit};
  plan.primary = PresetFanout(preset, lookahead);
  plan.after_fallback = plan.primary;
  if (preset == SsdPreset::kSwiftSpec) plan.tree_width = kTreeWidth;
  return plan;
}

}  // namespace foretoken
