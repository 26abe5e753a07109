#include "cli/plan/plan_predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/plan/plan_report.h"
#include "prediction/plan_reason.h"
#include "prediction/plan_search.h"

namespace foretoken {
namespace {

constexpr int kMaxBatch = 4096;
constexpr std::size_t kShownPlans = 12;

Status LimitModes(const std::string& text, PlanLimits* limits) {
  if (text.empty()) return {};
  FT_ASSIGN_OR_RETURN(const std::vector<Mode> modes, ParseModes(text));
  const auto known = PlanLimits::AllModes();
  limits->modes = {};
  for (const Mode mode : modes) {
    if (std::ranges::find(known, mode) == known.end()) {
      return InvalidInput(
          fmt::format("--modes: '{}' cannot be predicted; choose from ar, sd, ssd, ngram, sssd",
                      ModeName(mode)));
    }
    limits->modes.push_back(mode);
  }
  return {};
}

Result<PlanLimits> ReadLimits(const PlanPredictOptions& options,
                              const std::vector<int>& lookaheads) {
  PlanLimits limits;
  limits.min_lookahead = std::ranges::min(lookaheads);
  limits.max_lookahead = std::ranges::max(lookaheads);
  limits.cache_budget = options.cache_budget;
  if (limits.cache_budget > 0 && limits.cache_budget <= limits.min_lookahead) {
    return InvalidInput(
        fmt::format("--cache-budget {} is below K + 1 = {}: each of a proposal's "
                    "outcome nodes needs a branch",
                    limits.cache_budget, limits.min_lookahead + 1));
  }
  FT_RETURN_IF_ERROR(LimitModes(options.modes, &limits));
  FT_ASSIGN_OR_RETURN(const Fallback fallback, ParseFallback(options.fallback));
  if (fallback != Fallback::kAuto) {
    limits.fallbacks = {};
    limits.fallbacks.push_back(fallback);
  }
  return limits;
}

PlanTable MakeTable(const PlanInput& input, const PlanLimits& limits,
                    const std::vector<int>& lookaheads, const Workload& load) {
  PlanTable table{.batch = load.batch, .rows = {}, .reason = {}, .fallback_rule = {}};
  for (const PlanSetting& setting : input.settings) {
    PlanLimits allowed = limits;
    if (setting.saguaro_c < 1) {  // Measured at one fan-out, which C is the more about.
      allowed.mean_fanouts = {};
      allowed.mean_fanouts.push_back(kDefaultFanout);
    }
    for (const RankedPlan& ranked : ChoosePlan(setting.model, allowed, load).ranked) {
      const bool wanted = ranked.plan.mode == Mode::kAr ||
                          std::ranges::find(lookaheads, ranked.plan.lookahead) != lookaheads.end();
      if (wanted) table.rows.push_back({.ranked = ranked, .saguaro_c = setting.saguaro_c});
    }
  }
  std::ranges::stable_sort(table.rows, [](const PlanRow& a, const PlanRow& b) {
    return a.ranked.prediction.tokens_per_second > b.ranked.prediction.tokens_per_second;
  });
  std::vector<RankedPlan> ranked;
  for (const PlanRow& row : table.rows) ranked.push_back(row.ranked);
  table.reason = ExplainChoice(ranked);
  for (const PlanRow& row : table.rows) {
    if (!row.ranked.plan.mode.during()) continue;
    const auto setting = std::ranges::find(input.settings, row.saguaro_c, &PlanSetting::saguaro_c);
    table.fallback_rule = FindFallbackRule(setting->model, row.ranked.plan, load.context);
    break;
  }
  return table;
}

}  // namespace

void AddPlanPredictOptions(CLI::App* app, PlanPredictOptions* options) {
  const OptionGroup add(app, "Choice");
  add("--batches", &options->batches, "LIST", "Batch sizes to compare, like 1,4,16")
      ->excludes(app->get_option("--batch"));
  add("--cache-budget", &options->cache_budget, "N",
      "Only this cache budget B, in branches; several are tried by default")
      ->check(Between(1, kMaxCacheBudget));
  add("--modes", &options->modes, "LIST",
      "Modes to choose from, like ar,sd,ssd; all that can be predicted by default");
  add("--all", &options->all, "Show every plan, not only the fastest");
}

Result<int> RunPlanPredict(const PlanPredictOptions& options, const PlanInput& input,
                           const PlanNumbers& numbers, const ReportFiles& files) {
  std::vector<int> batches = {std::max(1, numbers.batch)};
  if (!options.batches.empty()) {
    FT_ASSIGN_OR_RETURN(batches, ParseCounts("--batches", options.batches, kMaxBatch));
  }
  FT_ASSIGN_OR_RETURN(const std::vector<int> lookaheads,
                      ParseCounts("--lookahead", options.lookaheads, kMaxProposal));
  FT_ASSIGN_OR_RETURN(const PlanLimits limits, ReadLimits(options, lookaheads));
  std::string text = input.source + "\n";
  nlohmann::json tables = nlohmann::json::array();
  for (const int batch : batches) {
    PlanTable table =
        MakeTable(input, limits, lookaheads, {.batch = batch, .context = numbers.context});
    if (!options.all) KeepBestBudgets(&table);
    tables.push_back(PlanTableJson(table));
    text += "\n" + FormatPlanTable(table, options.all ? SIZE_MAX : kShownPlans,
                                   /*with_c=*/input.settings.size() > 1);
  }
  FT_RETURN_IF_ERROR(
      WriteReport(files, {{"source", input.source}, {"tables", std::move(tables)}}, text));
  return 0;
}

}  // namespace foretoken
