#include "cli/common/report_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

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

/// Maps axis values to sheet coordinates.
class Scale {
 public:
  Scale(const ChartAxis& axis, double from, double to) : axis_(axis), from_(from), to_(to) {}

  double operator()(double value) const {
    value = std::clamp(value, axis_.low, axis_.high);
    const double share = axis_.logarithmic
                             ? std::log(value / axis_.low) / std::log(axis_.high / axis_.low)
                             : (value - axis_.low) / (axis_.high - axis_.low);
    return from_ + (to_ - from_) * share;
  }

 private:
  const ChartAxis& axis_;
  double from_;
  double to_;
};

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
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
  const ChartAxis axis{.label = "", .low = 0, .high = high > 0 ? high : 1};
  const Scale x(axis, 1, kRight);
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
  const Scale to_x(x, kLeft, kRight);
  const Scale to_y(y, kBottom, kTop);
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

}  // namespace foretoken
