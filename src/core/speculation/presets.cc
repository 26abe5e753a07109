#include "core/speculation/presets.h"

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
    case SsdPreset::kDsi:
      return OnlyAtTheEnd(1, lookahead);
    case SsdPreset::kSpecBranch:
      return OnlyAtTheEnd(kDefaultFanout, lookahead);
    case SsdPreset::kSwiftSpec:
      return UniformFanout(1, lookahead);
    case SsdPreset::kMirrorSd:
      return UniformFanout(2, lookahead);
  }
  FT_CHECK(false, "preset {}", static_cast<int>(preset));
}

}  // namespace

SpeculationPlan PresetPlan(SsdPreset preset, int lookahead) {
  SpeculationPlan plan{.mode = Mode::kSsd, .lookahead = lookahead, .fallback = Fallback::kJit};
  plan.primary = PresetFanout(preset, lookahead);
  plan.after_fallback = plan.primary;
  if (preset == SsdPreset::kSwiftSpec) plan.tree_width = kTreeWidth;
  if (preset == SsdPreset::kDsi) plan.fallback = Fallback::kNone;
  return plan;
}

}  // namespace foretoken
