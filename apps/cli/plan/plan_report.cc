#include "cli/plan/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "cli/common/terminal.h"

namespace foretoken {
namespace {

constexpr double kNsPerUs = 1e3;

std::string FanoutText(const FanoutShape& shape) {
  std::string text;
  for (const int fanout : shape.at) text += fmt::format("{}{}", text.empty() ? "" : " ", fanout);
  return text;
}

std::vector<int> FanoutList(const FanoutShape& shape) { return {shape.at.begin(), shape.at.end()}; }

std::vector<std::string> Cells(const PlanRow& row, double ar_speed, bool with_c) {
  const auto& [plan, prediction] = row.ranked;
  const bool ssd = plan.mode.during();
  std::vector<std::string> cells = {std::string(ModeName(plan.mode)),
                                    plan.mode.drafts() ? fmt::format("{}", plan.lookahead) : "-",
                                    ssd ? fmt::format("{}", plan.primary.budget()) : "-",
                                    ssd ? std::string(FallbackName(plan.fallback)) : "-"};
  if (with_c) cells.push_back(plan.mode.drafts() ? fmt::format("{:g}", row.saguaro_c) : "-");
  cells.push_back(fmt::format("{:.1f}", prediction.tokens_per_second));
  cells.push_back(ar_speed > 0 ? fmt::format("{:.2f}x", prediction.tokens_per_second / ar_speed)
                               : "-");
  cells.push_back(fmt::format("{:.2f}", prediction.tokens_per_round));
  cells.push_back(FormatDuration(prediction.round_us * kNsPerUs));
  cells.push_back(prediction.wait_us >= 1 ? FormatDuration(prediction.wait_us * kNsPerUs) : "-");
  cells.push_back(ssd ? FormatPercent(prediction.hit_rate) : "-");
  cells.push_back(ssd ? FanoutText(plan.primary) : "-");
  return cells;
}

nlohmann::json FallbackRuleJson(const FallbackRule& rule) {
  nlohmann::json json = {{"fast", FallbackName(rule.fast)},
                         {"p_hit", rule.p_hit},
                         {"e_hit", rule.E_hit},
                         {"e_miss", rule.E_miss},
                         {"t_p", rule.T_p},
                         {"text", ExplainFallbackRule(rule)}};
  // JSON has no infinity, and 0 crossovers means that there is none.
  json["b_star"] = std::isinf(rule.b_star) ? nlohmann::json() : nlohmann::json(rule.b_star);
  json["crossover"] = rule.crossover == 0 ? nlohmann::json() : nlohmann::json(rule.crossover);
  return json;
}

// The rows to show: the first `most`, and of the modes beyond them the best.
std::vector<const PlanRow*> Shown(const PlanTable& table, std::size_t most) {
  std::vector<const PlanRow*> shown;
  std::set<Mode> modes;
  for (const PlanRow& row : table.rows) {
    const bool first = modes.insert(row.ranked.plan.mode).second;
    if (shown.size() < most || first) shown.push_back(&row);
  }
  return shown;
}

}  // namespace

void KeepBestBudgets(PlanTable* table) {
  std::set<std::tuple<Mode, int, Fallback, double>> seen;
  std::erase_if(table->rows, [&seen](const PlanRow& row) {
    const SpeculationPlan& plan = row.ranked.plan;
    // AR and what does not sample from the draft are the same at every C.
    const double c = NeedsDraft(plan.mode) ? row.saguaro_c : 1;
    return !seen.emplace(plan.mode, plan.lookahead, plan.fallback, c).second;
  });
}

std::string FormatPlanTable(const PlanTable& table, std::size_t most, bool with_c) {
  double ar_speed = 0;
  for (const PlanRow& row : table.rows) {
    if (row.ranked.plan.mode == Mode::kAr) ar_speed = row.ranked.prediction.tokens_per_second;
  }
  std::vector<std::string> header = {"mode", "K", "B", "fallback"};
  if (with_c) header.emplace_back("C");
  for (const char* name :
       {"tokens/s", "of ar", "tokens/round", "round", "waiting", "hits", "F_k"}) {
    header.emplace_back(name);
  }
  TextTable text(std::move(header));
  const auto shown = Shown(table, most);
  for (const PlanRow* row : shown) text.Add(Cells(*row, ar_speed, with_c));
  std::string out = fmt::format("Batch {}\n{}", table.batch, text.Render(2));
  if (shown.size() < table.rows.size()) {
    out += fmt::format("  {} slower plans are not shown; --all shows them.\n",
                       table.rows.size() - shown.size());
  }
  out += "  " + table.reason + "\n";
  if (table.fallback_rule) out += "  " + ExplainFallbackRule(*table.fallback_rule) + "\n";
  return out;
}

nlohmann::json PlanTableJson(const PlanTable& table) {
  nlohmann::json plans = nlohmann::json::array();
  for (const PlanRow& row : table.rows) {
    const auto& [plan, prediction] = row.ranked;
    nlohmann::json json = {{"mode", ModeName(plan.mode)},
                           {"tokens_per_second", prediction.tokens_per_second},
                           {"tokens_per_round", prediction.tokens_per_round},
                           {"round_us", prediction.round_us},
                           {"wait_us", prediction.wait_us},
                           {"target_rows", prediction.target_rows}};
    if (plan.mode.drafts()) {
      json["lookahead"] = plan.lookahead;
      json["saguaro_c"] = row.saguaro_c;
    }
    if (plan.mode.during()) {
      json["fallback"] = FallbackName(plan.fallback);
      json["cache_budget"] = plan.primary.budget();
      json["fanout"] = FanoutList(plan.primary);
      json["fanout_after_fallback"] = FanoutList(plan.after_fallback);
      json["hit_rate"] = prediction.hit_rate;
      json["hit_rate_primary"] = prediction.hit_primary;
      json["hit_rate_fallback"] = prediction.hit_fallback;
    }
    plans.push_back(std::move(json));
  }
  nlohmann::json json = {
      {"batch", table.batch}, {"reason", table.reason}, {"plans", std::move(plans)}};
  if (table.fallback_rule) json["fallback_rule"] = FallbackRuleJson(*table.fallback_rule);
  return json;
}

}  // namespace foretoken
