#include "chart_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "html_page.h"

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

ChartAxis LinearAxis(const Range& range, bool from_zero) {
  const double low = from_zero ? std::min(0.0, range.low) : range.low;
  ChartAxis axis;
  axis.ticks = LinearTicks(low, range.high > low ? range.high : low + 1);
  axis.low = axis.ticks.front();
  axis.high = axis.ticks.back();
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

std::string RenderCard(ChartCard card) {
  Range x;
  Range y;
  std::string legend;
  for (std::size_t i = 0; i < card.series.size(); ++i) {
    ChartSeries& line = card.series[i];
    line.color = static_cast<int>(i) % kReportColors;
    for (const auto& [px, py] : line.points) {
      x.Cover(px);
      y.Cover(py);
    }
    legend += fmt::format("<li><span class=\"key\" style=\"background:var(--s{})\"></span>{}</li>",
                          line.color, EscapeHtml(line.name));
  }
  FT_CHECK(x.low <= x.high, "a chart without points: {}", card.heading);
  ChartAxis x_axis = card.logarithmic_x ? LogarithmicAxis(x) : LinearAxis(x, false);
  x_axis.label = card.x_label;
  return fmt::format(
      "<div class=\"card\"><h3>{}</h3>\n<p>{}</p>\n<ul class=\"legend\">{}</ul>\n{}</div>\n",
      EscapeHtml(card.heading), EscapeHtml(card.note), legend,
      LineChart(card.heading, x_axis, LinearAxis(y, card.y_from_zero), card.series, true));
}

std::string CardSection(std::string_view heading, std::string_view note,
                        const std::vector<ChartCard>& cards) {
  std::string html = fmt::format("<section><h2>{}</h2>\n<p>{}</p>\n<div class=\"charts\">\n",
                                 EscapeHtml(heading), EscapeHtml(note));
  for (const ChartCard& card : cards) html += RenderCard(card);
  return html + "</div></section>\n";
}

}  // namespace foretoken
