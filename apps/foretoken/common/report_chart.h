#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/json.h"

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

/// Round numbers 1, 2 or 5 times a power of ten apart that cover [low, high], about five.
std::vector<double> LinearTicks(double low, double high);

/// Powers of ten within [low, high]; with 2 and 5 times them where that leaves fewer than three.
std::vector<double> LogarithmicTicks(double low, double high);

/// An SVG of horizontal bars from 0 to `high`, one below the other, each labelled with its name
/// and value. `title` is read out by screen readers.
std::string BarChart(std::string_view title, std::span<const ChartBar> bars, double high);

/// An SVG of lines over common axes; a point outside is clamped to the frame. `markers` draws a
/// dot with a tooltip at every point.
std::string LineChart(std::string_view title, const ChartAxis& x, const ChartAxis& y,
                      std::span<const ChartSeries> series, bool markers);

/// Lines or bars with their heading, explanation and legend, on axes that fit what is drawn. Of
/// lines, y begins at 0 unless it is logarithmic.
struct ChartCard {
  std::string heading;
  std::string note;  ///< What is drawn; names the y axis.
  std::string x_label;
  bool logarithmic_x = false;
  bool logarithmic_y = false;
  std::vector<double> x_ticks;  ///< Empty: round numbers.
  double y_reach = 0;           ///< The y axis goes up to here at least.
  bool markers = true;          ///< A dot at every point.
  std::vector<ChartSeries> series;
  std::vector<ChartBar> bars;  ///< In place of lines.
};

/// A section of cards, several in a row where there is room, their bars on one scale. Cards without
/// a point or bar are left out, and so is a section without cards. Text is escaped.
std::string CardSection(std::string_view heading, std::string_view note,
                        const std::vector<ChartCard>& cards);

/// The distribution of a histogram [[upper edge, count], ...] as a line: the share of values at or
/// below each edge, from 0 at the first. What is no bin is passed over; an edge that cannot lie on
/// a logarithmic axis is folded into the next.
std::vector<std::pair<double, double>> Distribution(const Json& histogram);

}  // namespace foretoken
