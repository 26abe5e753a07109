#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken {

/// `text` with the five characters that mean something to HTML replaced by entities.
std::string EscapeHtml(std::string_view text);

/// About three significant digits, without trailing noise: "0.0123", "1.23", "45.6", "1234".
std::string FormatNumber(double value);

/// A bar with a whisker. `color` is the index of the style class s0, s1 ... that paints it.
struct ChartBar {
  std::string name;
  int color = 0;
  double value = 0;
  double low = 0;
  double high = 0;
};

/// Points in ascending x, joined by straight lines.
struct ChartSeries {
  std::string name;
  int color = 0;
  std::vector<std::pair<double, double>> points;
};

struct ChartAxis {
  std::string label;
  double low = 0;
  double high = 1;
  bool logarithmic = false;   ///< Then 0 < low < high.
  std::vector<double> ticks;  ///< Within [low, high].
};

/// Powers of ten within [low, high]; with 2 and 5 times them where that leaves fewer than three.
std::vector<double> LogarithmicTicks(double low, double high);

/// An SVG of horizontal bars from 0 to `high`, one below the other, each labelled with its name
/// and value. `title` is read out by screen readers.
std::string BarChart(std::string_view title, std::span<const ChartBar> bars, double high);

/// An SVG of lines over common axes; a point outside is clamped to the frame. `markers` draws a
/// dot with a tooltip at every point.
std::string LineChart(std::string_view title, const ChartAxis& x, const ChartAxis& y,
                      std::span<const ChartSeries> series, bool markers);

}  // namespace foretoken
