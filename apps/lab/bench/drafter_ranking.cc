#include "apps/lab/bench/drafter_ranking.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/common/time_units.h"
#include "json/json.h"

namespace foretoken {
namespace {

constexpr std::size_t kPositions = 4;  // Positions of acceptance that a terminal has room for.

struct Ranked {
  const ModeResult* mode;
  ModeFigures figures;
};

std::vector<Ranked> Rank(const SetResult& set, const BenchContext& context) {
  std::vector<Ranked> ranked;
  for (const ModeResult& mode : set.modes) {
    if (!mode.drafter.empty()) ranked.push_back({&mode, ComputeFigures(set, mode, context)});
  }
  std::ranges::stable_sort(
      ranked, [](const Ranked& a, const Ranked& b) { return a.figures.median > b.figures.median; });
  return ranked;
}

// What a round's drafting took: the target's time in SD; in SSD that of the draft's own device,
// beside the target.
double DraftUs(const ModeResult& mode) {
  if (!mode.mode.during()) return mode.engine.wait.mean() / kNsPerUs;
  return mode.total.rounds == 0
             ? 0
             : static_cast<double>(mode.engine.draft.ns) / kNsPerUs / mode.total.rounds;
}

}  // namespace

std::string RenderRanking(const SetResult& set, const BenchContext& context) {
  const std::vector<Ranked> ranked = Rank(set, context);
  if (ranked.empty()) return {};
  TextTable table({"drafter", "as", "tokens/s", "speed-up", "tokens/round",
                   "accepted at 1, 2, 3, 4", "draft us a round"});
  for (const auto& [mode, figures] : ranked) {
    std::string accepted;
    const std::vector<double> shares = AcceptancePerPosition(mode->total);
    for (std::size_t i = 0; i < std::min(shares.size(), kPositions); ++i) {
      accepted += fmt::format("{}{:.2f}", i == 0 ? "" : " ", shares[i]);
    }
    // "sd@all" of "sd:NAME@all".
    const std::size_t at = mode->label.rfind("@all");
    table.Add({mode->drafter,
               fmt::format("{}{}", ModeName(mode->mode), at == std::string::npos ? "" : "@all"),
               fmt::format("{:.1f}", figures.median),
               figures.speedup ? fmt::format("{:.2f}x", figures.speedup->value) : "-",
               fmt::format("{:.2f}", mode->total.acceptance_length()), accepted,
               fmt::format("{:.0f}", DraftUs(*mode))});
  }
  return "\n  Drafters, the fastest first\n" + table.Render(2);
}

Json RankingJson(const SetResult& set, const BenchContext& context) {
  Json labels = Json::array();
  for (const Ranked& ranked : Rank(set, context)) labels.push_back(ranked.mode->label);
  return labels;
}

}  // namespace foretoken
