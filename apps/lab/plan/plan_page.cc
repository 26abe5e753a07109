#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <vector>

#include "apps/foretoken/common/html_page.h"
#include "apps/foretoken/common/report_chart.h"
#include "apps/lab/plan/plan_views.h"
#include "json/json.h"

namespace foretoken {
namespace {

constexpr std::size_t kChartedPlans = 20;

// The fastest plan of every mode for each K. AR has no K: a level line.
ChartCard PlanSpeedCard(const Json& table) {
  std::map<std::string, std::map<double, double>> best;
  double longest = 1;
  for (const Json& plan : table["plans"]) {
    const double lookahead = plan.value("lookahead", 1.0);
    double& speed = best[plan["mode"]][lookahead];
    speed = std::max(speed, plan["tokens_per_second"].get<double>());
    longest = std::max(longest, lookahead);
  }
  ChartCard card{.heading = fmt::format("batch {}", table["batch"].get<int>()),
                 .note = "Tokens per second, with the best fallback and cache budget.",
                 .x_label = "proposal length K"};
  for (const auto& [mode, speeds] : best) {
    card.series.push_back({mode, static_cast<int>(card.series.size()), {}});
    auto& points = card.series.back().points;
    points.assign(speeds.begin(), speeds.end());
    if (mode == "ar") points.emplace_back(longest, points.front().second);
  }
  return card;
}

std::string PlansTable(const Json& table) {
  std::string html =
      "<div class=\"scroll\"><table>\n<thead><tr><th>mode</th><th>K</th><th>B</th><th>fallback</th>"
      "<th>tokens/s</th><th>tokens/round</th><th>cache hits</th></tr></thead>\n<tbody>\n";
  std::size_t shown = 0;
  for (const Json& plan : table["plans"]) {
    if (shown++ == kChartedPlans) break;
    const auto cell = [&plan](const char* key) {
      if (!plan.contains(key)) return std::string("\u2013");
      return EscapeHtml(plan[key].is_string() ? plan[key].get<std::string>() : plan[key].dump());
    };
    html += fmt::format(
        "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{:.1f}</td><td>{:.2f}</td><td>{}</td>"
        "</tr>\n",
        cell("mode"), cell("lookahead"), cell("cache_budget"), cell("fallback"),
        plan["tokens_per_second"].get<double>(), plan["tokens_per_round"].get<double>(),
        plan.contains("hit_rate") ? fmt::format("{:.1f}%", plan["hit_rate"].get<double>() * 100)
                                  : std::string("\u2013"));
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace

std::string PlanPage(const Json& report) {
  std::vector<ChartCard> cards;
  std::string tables;
  for (const Json& table : report["tables"]) {
    cards.push_back(PlanSpeedCard(table));
    tables += fmt::format("<section>\n<h2>Batch {}</h2>\n<p>{}</p>\n{}</section>\n",
                          table["batch"].get<int>(), EscapeHtml(table["reason"].get<std::string>()),
                          PlansTable(table));
  }
  return HtmlPage("Foretoken plan",
                  fmt::format("<h1>Predicted speeds</h1>\n<p>{}</p>\n",
                              EscapeHtml(report["source"].get<std::string>())) +
                      CardSection("Speed by mode and K", "The fastest settings of each.", cards) +
                      tables);
}

}  // namespace foretoken
