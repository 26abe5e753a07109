#include "cli/common/chart_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace foretoken {
namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Cover(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
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
  std::erase_if(axis.ticks, [&](double tick) { return tick < axis.low || tick > axis.high; });
  return axis;
}

ChartAxis LogarithmicAxis(const Range& range) {
  ChartAxis axis{.low = range.low / 1.1, .high = range.high * 1.1, .logarithmic = true};
  axis.ticks = LogarithmicTicks(axis.low, axis.high);
  return axis;
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

std::string RenderCard(const ChartCard& card) {
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
  ChartAxis x_axis = card.logarithmic_x ? LogarithmicAxis(x) : TightAxis(x);
  x_axis.label = card.x_label;
  return fmt::format(
      "<div class=\"card\"><h3>{}</h3>\n<p>{}</p>\n<ul class=\"legend\">{}</ul>\n{}</div>\n",
      EscapeHtml(card.heading), EscapeHtml(card.note), legend,
      LineChart(card.heading, x_axis, AxisFromZero(y), card.series, true));
}

std::string CardSection(std::string_view heading, std::string_view note,
                        const std::vector<ChartCard>& cards) {
  std::string html = fmt::format("<section><h2>{}</h2>\n<p>{}</p>\n<div class=\"charts\">\n",
                                 EscapeHtml(heading), EscapeHtml(note));
  for (const ChartCard& card : cards) html += RenderCard(card);
  return html + "</div></section>\n";
}

}  // namespace foretoken
