#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/report_chart.h"

namespace foretoken {

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

/// The card as HTML; text is escaped. Needs at least one point or bar.
std::string RenderCard(const ChartCard& card);

/// A section of cards, several in a row where there is room, their bars on one scale. Cards without
/// a point or bar are left out, and so is a section without cards.
std::string CardSection(std::string_view heading, std::string_view note,
                        const std::vector<ChartCard>& cards);

/// The distribution of a histogram [[upper edge, count], ...] as a line: the share of values at or
/// below each edge, from 0 at the first. What is no bin is passed over; an edge that cannot lie on
/// a logarithmic axis is folded into the next.
std::vector<std::pair<double, double>> Distribution(const nlohmann::json& histogram);

/// Round numbers 1, 2 or 5 times a power of ten apart that cover [low, high], about five.
std::vector<double> LinearTicks(double low, double high);

}  // namespace foretoken
