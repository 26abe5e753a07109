#include "core/speculation/presets.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(SsdPresets, NamesLeadBack) {
  for (const SsdPreset preset : kSsdPresets) {
    const auto parsed = ParseSsdPreset(SsdPresetName(preset));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, preset);
  }
  EXPECT_EQ(ParseSsdPreset("medusa").error().message,
            "'medusa' is not an SSD preset: choose one of saguaro, pearl, amusd, specbranch, "
            "swiftspec, mirror-sd, dsi");
}

TEST(SsdPresets, PrepareWhatTheMethodsPrepare) {
  for (const int lookahead : {1, 6, kMaxProposal}) {
    for (const SsdPreset preset : kSsdPresets) {
      const SpeculationPlan plan = PresetPlan(preset, lookahead);
      EXPECT_EQ(plan.mode, Mode::kSsd);
      EXPECT_EQ(plan.fallback, preset == SsdPreset::kDsi ? Fallback::kNone : Fallback::kJit);
      ASSERT_EQ(plan.primary.at.size(), std::size_t(lookahead) + 1);
      EXPECT_EQ(plan.primary, plan.after_fallback);
    }
    EXPECT_EQ(PresetPlan(SsdPreset::kPearl, lookahead).primary.budget(), 1);
    EXPECT_EQ(PresetPlan(SsdPreset::kPearl, lookahead).primary.at.back(), 1);
    EXPECT_EQ(PresetPlan(SsdPreset::kAmusd, lookahead), PresetPlan(SsdPreset::kPearl, lookahead));
    const SpeculationPlan branch = PresetPlan(SsdPreset::kSpecBranch, lookahead);
    EXPECT_EQ(branch.primary.budget(), branch.primary.at.back());
    EXPECT_GT(branch.primary.budget(), 1);
    const SpeculationPlan tree = PresetPlan(SsdPreset::kSwiftSpec, lookahead);
    EXPECT_GT(tree.tree_width, 1);
    EXPECT_EQ(tree.primary.budget(), lookahead + 1);
    EXPECT_EQ(PresetPlan(SsdPreset::kSaguaro, lookahead).tree_width, 1);
    EXPECT_EQ(PresetPlan(SsdPreset::kMirrorSd, lookahead).primary.budget(), 2 * (lookahead + 1));
    EXPECT_EQ(PresetPlan(SsdPreset::kDsi, lookahead).primary,
              PresetPlan(SsdPreset::kPearl, lookahead).primary);
  }
}

}  // namespace
}  // namespace foretoken
