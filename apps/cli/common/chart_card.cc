#include "cli/common/chart_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace foretoken {
namespace {

using nlohmann::json;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool whole = true;  // Only whole numbers.

  void Cover(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
    whole = whole && value == std::floor(value);
  }
};

// From 0 and up to a tick.
ChartAxis AxisFromZero(const Range& range) {
  const double low = std::min(0.0, range.low);
  ChartAxis axis;
  axis.ticks = LinearTicks(low, range.high > low ? range.high : low + 1);
  axis.low = axis.ticks.front();
  axis.high = axis.ticks.back();
  return axis;
}

// No longer than the range.
ChartAxis TightAxis(const Range& range) {
  ChartAxis axis{.low = range.low, .high = range.high > range.low ? range.high : range.low + 1};
  axis.ticks = LinearTicks(axis.low, axis.high);
  std::erase_if(axis.ticks, [&](double tick) {
    return tick < axis.low || tick > axis.high || (range.whole && tick != std::floor(tick));
  });
  return axis;
}

ChartAxis LogarithmicAxis(const Range& range) {
  ChartAxis axis{.low = range.low / 1.1, .high = range.high * 1.1, .logarithmic = true};
  axis.ticks = LogarithmicTicks(axis.low, axis.high);
  return axis;
}

bool HasPoints(const ChartCard& card) {
  return std::ranges::any_of(card.series, [](const auto& line) { return !line.points.empty(); });
}

// The lines and their legend.
std::string Lines(const ChartCard& card, std::string_view title) {
  Range x;
  Range y;
  std::string legend;
  for (const ChartSeries& line : card.series) {
    for (const auto& [px, py] : line.points) {
      x.Cover(px);
      y.Cover(py);
    }
    legend += fmt::format("<li><span class=\"key\" style=\"background:var(--s{})\"></span>{}</li>",
                          line.color, EscapeHtml(line.name));
  }
  FT_CHECK(x.low <= x.high, "a chart without points: {}", card.heading);
  if (card.y_reach > 0) y.Cover(card.y_reach);
  ChartAxis x_axis = card.logarithmic_x ? LogarithmicAxis(x) : TightAxis(x);
  x_axis.label = card.x_label;
  if (!card.x_ticks.empty()) x_axis.ticks = card.x_ticks;
  const ChartAxis y_axis = card.logarithmic_y ? LogarithmicAxis(y) : AxisFromZero(y);
  return fmt::format("<ul class=\"legend\">{}</ul>\n{}", legend,
                     LineChart(title, x_axis, y_axis, card.series, card.markers));
}

// `bar_reach`: the end of the scale of bars.
std::string Render(const ChartCard& card, std::string_view title, double bar_reach) {
  std::string html = fmt::format("<div class=\"card\"><h3>{}</h3>\n", EscapeHtml(card.heading));
  if (!card.note.empty()) html += fmt::format("<p>{}</p>\n", EscapeHtml(card.note));
  html += card.bars.empty() ? Lines(card, title) : BarChart(title, card.bars, bar_reach);
  return html + "</div>\n";
}

double BarReach(const ChartCard& card) {
  double reach = 0;
  for (const ChartBar& bar : card.bars) reach = std::max({reach, bar.value, bar.high});
  return reach;
}

}  // namespace

std::vector<double> LinearTicks(double low, double high) {
  constexpr double kTicks = 5;
  const double rough = (high - low) / kTicks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double digit : {5, 2, 1}) {
    if (digit * power >= rough) step = digit * power;
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9);
  const double last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

std::string RenderCard(const ChartCard& card) { return Render(card, card.heading, BarReach(card)); }

std::string CardSection(std::string_view heading, std::string_view note,
                        const std::vector<ChartCard>& cards) {
  double bar_reach = 0;
  for (const ChartCard& card : cards) bar_reach = std::max(bar_reach, BarReach(card));
  std::string html;
  for (const ChartCard& card : cards) {
    if (card.bars.empty() && !HasPoints(card)) continue;
    html += Render(card, fmt::format("{}, {}", heading, card.heading), bar_reach);
  }
  if (html.empty()) return html;
  return fmt::format(
      "<section><h2>{}</h2>\n<p>{}</p>\n<div class=\"charts\">\n{}</div></section>\n",
      EscapeHtml(heading), EscapeHtml(note), html);
}

std::vector<std::pair<double, double>> Distribution(const json& histogram) {
  std::vector<std::pair<double, double>> points;
  double total = 0;
  for (const json& bin : histogram) {
    if (!bin.is_array() || bin.size() != 2 || !bin[0].is_number() || !bin[1].is_number()) continue;
    const double count = bin[1].get<double>();
    if (count <= 0) continue;
    total += count;
    if (bin[0].get<double>() > 0) points.emplace_back(bin[0].get<double>(), total);
  }
  for (auto& point : points) point.second /= total;
  if (!points.empty()) points.insert(points.begin(), {points.front().first, 0.0});
  return points;
}

}  // namespace foretoken
