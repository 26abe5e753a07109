#include "apps/foretoken/common/report_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace foretoken {
namespace {

// Charts are drawn on a sheet as wide as a phone, and laid out several in a row where there is
// room, so that their text keeps its size everywhere.
constexpr double kWidth = 400;

std::string OpenSvg(double height, std::string_view title) {
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n<title>{}</title>\n", kWidth,
      height, EscapeHtml(title), EscapeHtml(title));
}

// Maps values of an axis to sheet coordinates.
auto ScaleOf(const ChartAxis& axis, double from, double to) {
  return [=](double value) {
    value = std::clamp(value, axis.low, axis.high);
    const double share = axis.logarithmic
                             ? std::log(value / axis.low) / std::log(axis.high / axis.low)
                             : (value - axis.low) / (axis.high - axis.low);
    return from + (to - from) * share;
  };
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  constexpr std::string_view kEscaped = "&<>\"'";
  constexpr std::string_view kEntities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  for (const char c : text) {
    const std::size_t at = kEscaped.find(c);
    escaped += at < kEscaped.size() ? kEntities[at] : std::string_view(&c, 1);
  }
  return escaped;
}

std::string FormatNumber(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 100) return fmt::format("{:.0f}", value);
  if (magnitude >= 10) return fmt::format("{:.1f}", value);
  if (magnitude >= 1 || magnitude == 0) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3g}", value);
}

std::vector<double> LogarithmicTicks(double low, double high) {
  const auto collect = [&](std::initializer_list<double> digits) {
    std::vector<double> ticks;
    for (int exponent = static_cast<int>(std::floor(std::log10(low))); exponent <= 12; ++exponent) {
      for (const double digit : digits) {
        const double tick = digit * std::pow(10, exponent);
        if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
      }
    }
    return ticks;
  };
  const std::vector<double> decades = collect({1});
  return decades.size() >= 3 ? decades : collect({1, 2, 5});
}

std::string BarChart(std::string_view title, std::span<const ChartBar> bars, double high) {
  constexpr double kRow = 40;
  constexpr double kBar = 14;
  constexpr double kRight = kWidth - 8;
  const auto x = ScaleOf({.label = "", .low = 0, .high = high > 0 ? high : 1}, 1, kRight);
  std::string svg = OpenSvg(kRow * static_cast<double>(bars.size()) + 4, title);
  auto out = std::back_inserter(svg);
  double y = 14;
  for (const ChartBar& bar : bars) {
    fmt::format_to(out, "<text x=\"1\" y=\"{:.1f}\">{}</text>\n", y, EscapeHtml(bar.name));
    fmt::format_to(out, "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"num end\">{}</text>\n", kRight, y,
                   FormatNumber(bar.value));
    fmt::format_to(out,
                   "<rect class=\"fill s{}\" x=\"1\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" "
                   "rx=\"2\"><title>{}: {} ({} to {})</title></rect>\n",
                   bar.color, y + 5, std::max(x(bar.value) - 1, 1.0), kBar, EscapeHtml(bar.name),
                   FormatNumber(bar.value), FormatNumber(bar.low), FormatNumber(bar.high));
    if (bar.high > bar.low) {
      const double middle = y + 5 + kBar / 2;
      fmt::format_to(out, "<path class=\"whisker\" d=\"M{0:.1f} {2:.1f}v8m0-4H{1:.1f}m0-4v8\"/>\n",
                     x(bar.low), x(bar.high), middle - 4);
    }
    y += kRow;
  }
  svg += "</svg>\n";
  return svg;
}

std::string LineChart(std::string_view title, const ChartAxis& x, const ChartAxis& y,
                      std::span<const ChartSeries> series, bool markers) {
  constexpr double kLeft = 38;
  constexpr double kRight = kWidth - 10;
  constexpr double kTop = 8;
  constexpr double kBottom = 190;
  const auto to_x = ScaleOf(x, kLeft, kRight);
  const auto to_y = ScaleOf(y, kBottom, kTop);
  std::string svg = OpenSvg(kBottom + 36, title);
  auto out = std::back_inserter(svg);
  for (const double tick : y.ticks) {
    fmt::format_to(out, "<path class=\"grid\" d=\"M{} {:.1f}H{}\"/>", kLeft, to_y(tick), kRight);
    fmt::format_to(out, "<text class=\"tick end\" x=\"{}\" y=\"{:.1f}\">{:g}</text>\n", kLeft - 6,
                   to_y(tick) + 4, tick);
  }
  for (const double tick : x.ticks) {
    fmt::format_to(out, "<path class=\"grid\" d=\"M{:.1f} {}V{}\"/>", to_x(tick), kTop, kBottom);
    fmt::format_to(out, "<text class=\"tick middle\" x=\"{:.1f}\" y=\"{}\">{:g}</text>\n",
                   to_x(tick), kBottom + 15, tick);
  }
  fmt::format_to(out, "<text class=\"tick middle\" x=\"{}\" y=\"{}\">{}</text>\n",
                 (kLeft + kRight) / 2, kBottom + 31, EscapeHtml(x.label));
  for (const ChartSeries& line : series) {
    fmt::format_to(out, "<polyline class=\"line s{}\" points=\"", line.color);
    for (const auto& [px, py] : line.points) {
      fmt::format_to(out, "{:.1f},{:.1f} ", to_x(px), to_y(py));
    }
    fmt::format_to(out, "\"><title>{}</title></polyline>\n", EscapeHtml(line.name));
    if (!markers) continue;
    for (const auto& [px, py] : line.points) {
      fmt::format_to(out,
                     "<circle class=\"fill s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\">"
                     "<title>{}, {:g}: {}</title></circle>\n",
                     line.color, to_x(px), to_y(py), EscapeHtml(line.name), px, FormatNumber(py));
    }
  }
  svg += "</svg>\n";
  return svg;
}

namespace {

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

std::vector<std::pair<double, double>> Distribution(const Json& histogram) {
  std::vector<std::pair<double, double>> points;
  double total = 0;
  for (const Json& bin : histogram) {
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
