#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <vector>

#include "apps/foretoken/common/command_line.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/common/time_units.h"
#include "apps/lab/plan/plan_views.h"
#include "core/prediction/fallback_rule.h"
#include "core/prediction/plan_search.h"
#include "json/json.h"

namespace foretoken {
namespace {

constexpr int kMaxBatch = 4096;
constexpr std::size_t kPrintedPlans = 12;

// A plan and the setting that it was ranked for.
struct PlanRow {
  RankedPlan ranked;
  const PlanSetting* setting;
};

Status LimitModes(const std::string& text, PlanLimits* limits) {
  if (text.empty()) return {};
  FT_ASSIGN_OR_RETURN(const std::vector<Mode> modes, ParseModes(text));
  const auto known = PlanLimits::AllModes();
  limits->modes = {};
  for (const Mode mode : modes) {
    if (std::ranges::find(known, mode) == known.end()) {
      std::vector<std::string_view> names;
      for (const Mode other : known) names.push_back(ModeName(other));
      return Invalid("--modes: '{}' cannot be predicted; choose from {}", ModeName(mode),
                     fmt::join(names, ", "));
    }
    limits->modes.push_back(mode);
  }
  return {};
}

Result<PlanLimits> ReadLimits(const PlanPredictOptions& options, const PlanNumbers& numbers,
                              const std::vector<int>& lookaheads) {
  PlanLimits limits;
  limits.min_lookahead = std::ranges::min(lookaheads);
  limits.max_lookahead = std::ranges::max(lookaheads);
  limits.cache_budget = options.cache_budget;
  if (limits.cache_budget && *limits.cache_budget <= limits.min_lookahead) {
    return Invalid(
        "--cache-budget {} is below K + 1 = {}: each of a proposal's outcome nodes needs a branch",
        *limits.cache_budget, limits.min_lookahead + 1);
  }
  FT_RETURN_IF_ERROR(LimitModes(options.modes, &limits));
  FT_ASSIGN_OR_RETURN(const Fallback fallback, ParseFallback(numbers.fallback));
  if (fallback != Fallback::kAuto) limits.fallbacks = {fallback};
  return limits;
}

Json FallbackRuleJson(const FallbackRule& rule) {
  Json out = {{"fast", FallbackName(rule.fast)},
              {"p_hit", rule.p_hit},
              {"e_hit", rule.E_hit},
              {"e_miss", rule.E_miss},
              {"t_p", rule.T_p},
              {"text", ExplainFallbackRule(rule)}};
  // JSON has no infinity, and 0 crossovers means that there is none.
  out["b_star"] = std::isinf(rule.b_star) ? Json() : Json(rule.b_star);
  out["crossover"] = rule.crossover == 0 ? Json() : Json(rule.crossover);
  return out;
}

Json PlanJson(const PlanRow& row) {
  const auto& [plan, prediction] = row.ranked;
  Json out = {{"mode", ModeName(plan.mode)},
              {"tokens_per_second", prediction.tokens_per_second},
              {"tokens_per_round", prediction.tokens_per_round},
              {"round_us", prediction.round_us},
              {"wait_us", prediction.wait_us},
              {"target_rows", prediction.target_rows}};
  if (plan.mode.drafts()) {
    out["lookahead"] = plan.lookahead;
    out["saguaro_c"] = row.setting->saguaro_c;
  }
  if (plan.mode.during()) {
    out["fallback"] = FallbackName(plan.fallback);
    out["cache_budget"] = plan.primary.budget();
    out["fanout"] = plan.primary.at;
    out["fanout_after_fallback"] = plan.after_fallback.at;
    out["hit_rate"] = prediction.hit_rate;
    out["hit_rate_primary"] = prediction.hit_primary;
    out["hit_rate_fallback"] = prediction.hit_fallback;
  }
  return out;
}

// Keeps for every mode, K, fallback and C the plan with the best cache budget.
void KeepBestBudgets(std::vector<PlanRow>* rows) {
  std::set<std::tuple<Mode, int, Fallback, double>> seen;
  std::erase_if(*rows, [&seen](const PlanRow& row) {
    const SpeculationPlan& plan = row.ranked.plan;
    // AR and what does not sample from the draft are the same at every C.
    const double c = NeedsDraft(plan.mode) ? row.setting->saguaro_c : 1;
    return !seen.emplace(plan.mode, plan.lookahead, plan.fallback, c).second;
  });
}

// The plans for one batch size, the fastest first; never empty.
Json MakeTable(const PlanInput& input, const PlanLimits& limits, const std::vector<int>& lookaheads,
               const Workload& load, bool every_budget) {
  std::vector<PlanRow> rows;
  for (const PlanSetting& setting : input.settings) {
    PlanLimits allowed = limits;
    // Measured at one fan-out, which C is the more about.
    if (setting.saguaro_c < 1) allowed.mean_fanouts = {kDefaultFanout};
    for (const RankedPlan& ranked : ChoosePlan(setting.model, allowed, load).ranked) {
      const bool wanted = ranked.plan.mode == Mode::kAr ||
                          std::ranges::find(lookaheads, ranked.plan.lookahead) != lookaheads.end();
      if (wanted) rows.push_back({.ranked = ranked, .setting = &setting});
    }
  }
  std::ranges::stable_sort(rows, [](const PlanRow& a, const PlanRow& b) {
    return a.ranked.prediction.tokens_per_second > b.ranked.prediction.tokens_per_second;
  });
  std::vector<RankedPlan> ranked;
  for (const PlanRow& row : rows) ranked.push_back(row.ranked);
  Json table = {{"batch", load.batch}, {"reason", ExplainChoice(ranked)}};
  for (const PlanRow& row : rows) {
    if (!row.ranked.plan.mode.during()) continue;
    const auto rule = FindFallbackRule(row.setting->model, row.ranked.plan, load.context);
    if (rule) table["fallback_rule"] = FallbackRuleJson(*rule);
    break;
  }
  if (!every_budget) KeepBestBudgets(&rows);
  for (const PlanRow& row : rows) table["plans"].push_back(PlanJson(row));
  return table;
}

constexpr int kColumnOfC = 4;

// `ar_speed`: 0 where it is unknown.
std::vector<std::string> PlanCells(const Json& plan, double ar_speed) {
  const auto number = [&plan](const char* key) { return plan[key].get<double>(); };
  const auto shown = [&plan](const char* key, const auto& show) {
    return plan.contains(key) ? show(plan[key]) : std::string("-");
  };
  const auto whole = [](const Json& value) { return value.dump(); };
  const auto text = [](const Json& value) { return value.get<std::string>(); };
  const auto fanouts = [](const std::vector<int>& fanout) {
    return fmt::format("{}", fmt::join(fanout, " "));
  };
  const double speed = number("tokens_per_second");
  return {plan["mode"],
          shown("lookahead", whole),
          shown("cache_budget", whole),
          shown("fallback", text),
          shown("saguaro_c", [](double c) { return fmt::format("{:g}", c); }),
          fmt::format("{:.1f}", speed),
          ar_speed > 0 ? fmt::format("{:.2f}x", speed / ar_speed) : "-",
          fmt::format("{:.2f}", number("tokens_per_round")),
          FormatDuration(number("round_us") * kNsPerUs),
          number("wait_us") >= 1 ? FormatDuration(number("wait_us") * kNsPerUs) : "-",
          shown("hit_rate", FormatPercent),
          shown("fanout", fanouts)};
}

// The first `most` rows and the best of every mode, then the reason. `with_c`: there was a C to
// choose.
std::string TableText(const Json& table, std::size_t most, bool with_c) {
  double ar_speed = 0;
  for (const Json& plan : table["plans"]) {
    if (plan["mode"] == ModeName(Mode::kAr)) ar_speed = plan["tokens_per_second"];
  }
  const auto columns = [with_c](std::vector<std::string> row) {
    if (!with_c) row.erase(row.begin() + kColumnOfC);
    return row;
  };
  TextTable text(columns({"mode", "K", "B", "fallback", "C", "tokens/s", "of ar", "tokens/round",
                          "round", "waiting", "hits", "F_k"}));
  std::set<std::string> modes;
  std::size_t shown = 0;
  for (const Json& plan : table["plans"]) {
    const bool first = modes.insert(plan["mode"]).second;
    if (shown >= most && !first) continue;
    text.Add(columns(PlanCells(plan, ar_speed)));
    ++shown;
  }
  std::string out = fmt::format("Batch {}\n{}", table["batch"].get<int>(), text.Render(2));
  if (shown < table["plans"].size()) {
    out += fmt::format("  {} slower plans are not shown; --all shows them.\n",
                       table["plans"].size() - shown);
  }
  out += "  " + table["reason"].get<std::string>() + "\n";
  if (!table.contains("fallback_rule")) return out;
  return out + "  " + table["fallback_rule"]["text"].get<std::string>() + "\n";
}

}  // namespace

void AddPlanPredictOptions(CLI::App* app, PlanPredictOptions* options) {
  const OptionGroup add(app, "Choice");
  add("--batches", &options->batches, "LIST", "Batch sizes to compare, like 1,4,16")
      ->excludes(FindOption(app, "--batch"));
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
  FT_ASSIGN_OR_RETURN(const std::vector<int> lookaheads, numbers.ParseLookaheads("1-12"));
  FT_ASSIGN_OR_RETURN(const PlanLimits limits, ReadLimits(options, numbers, lookaheads));
  std::string text = input.source + "\n";
  Json tables = Json::array();
  for (const int batch : batches) {
    tables.push_back(MakeTable(input, limits, lookaheads,
                               {.batch = batch, .context = numbers.context}, options.all));
    text += "\n" + TableText(tables.back(), options.all ? SIZE_MAX : kPrintedPlans,
                             /*with_c=*/input.settings.size() > 1);
  }
  const Json report = {{"kind", "plan"}, {"source", input.source}, {"tables", std::move(tables)}};
  FT_RETURN_IF_ERROR(WriteReport(files, report, text));
  return 0;
}

}  // namespace foretoken
