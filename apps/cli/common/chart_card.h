#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/report_chart.h"

namespace foretoken {

/// A line chart with its heading, explanation and legend, on axes that fit its points; y begins
/// at 0.
struct ChartCard {
  std::string heading;
  std::string note;  ///< What is drawn; names the y axis.
  std::string x_label;
  bool logarithmic_x = false;
  std::vector<ChartSeries> series;
};

/// The card as HTML; text is escaped. Needs at least one point.
std::string RenderCard(const ChartCard& card);

/// A section of cards, several in a row where there is room.
std::string CardSection(std::string_view heading, std::string_view note,
                        const std::vector<ChartCard>& cards);

/// Round numbers 1, 2 or 5 times a power of ten apart that cover [low, high], about five.
std::vector<double> LinearTicks(double low, double high);

}  // namespace foretoken
