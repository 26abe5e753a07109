#include "core/prediction/time_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "base/numbers/integers.h"

namespace foretoken {
namespace {

// Where `x` lies among ascending points: between `low` and `high` at `share` of the way, which
// exceeds 1 beyond the last point and is 0 below the first.
struct Place {
  std::size_t low = 0;
  std::size_t high = 0;
  double share = 0;
};

template <std::size_t N>
Place Locate(const StaticVector<int, N>& points, double x) {
  if (points.size() == 1 || x <= points[0]) return {};
  const std::size_t last = points.size() - 1;
  std::size_t low = 0;
  // Times have steps: beyond the last point the slope of a stretch of many steps is wanted.
  const bool beyond = x > points[last];
  while (low + 1 < last && (beyond ? 2 * points[low + 1] <= points[last] : x > points[low + 1])) {
    ++low;
  }
  const std::size_t high = beyond ? last : low + 1;
  return {low, high, (x - points[low]) / (points[high] - points[low])};
}

double Mix(double low, double high, double share) {
  // Noise must not make more work cheaper than the largest that was measured.
  const double slope = share > 1 ? std::max(0.0, high - low) : high - low;
  return share > 1 ? high + slope * (share - 1) : low + slope * share;
}

Status CheckAscending(std::string_view what, std::span<const int> points, int most) {
  if (points.empty() || points.size() > Size(most)) {
    return Invalid("{} points of {}: 1 to {} are wanted", points.size(), what, most);
  }
  int last = 0;
  for (const int point : points) {
    if (point <= last) {
      return Invalid("{} {} after {}: they must be positive and ascend", what, point, last);
    }
    last = point;
  }
  return {};
}

}  // namespace

Result<TimeTable> TimeTable::Make(std::span<const int> rows, std::span<const int> contexts,
                                  std::span<const double> us) {
  FT_RETURN_IF_ERROR(CheckAscending("rows", rows, kMaxRowPoints));
  FT_RETURN_IF_ERROR(CheckAscending("contexts", contexts, kMaxContextPoints));
  if (us.size() != rows.size() * contexts.size()) {
    return Invalid("{} times for {} rows and {} contexts: one for each pair is wanted", us.size(),
                   rows.size(), contexts.size());
  }
  for (const double time : us) {
    if (!(time > 0 && std::isfinite(time))) {
      return Invalid("a time of {} us: it must be positive", time);
    }
  }
  TimeTable table;
  for (const int point : rows) table.rows_.push_back(point);
  for (const int point : contexts) table.contexts_.push_back(point);
  std::ranges::copy(us, table.us_.begin());
  return table;
}

TimeTable TimeTable::Scaled(std::span<const double> by_rows) const {
  FT_CHECK(by_rows.size() == rows_.size(), "{} factors for {} row counts", by_rows.size(),
           rows_.size());
  TimeTable scaled = *this;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (std::size_t j = 0; j < contexts_.size(); ++j) {
      scaled.us_[i * contexts_.size() + j] *= by_rows[i];
    }
  }
  return scaled;
}

TimeTable TimeTable::Line(double base_us, double per_row_us) {
  FT_CHECK(base_us >= 0 && per_row_us >= 0);
  TimeTable table;
  table.rows_ = {1, 2};
  table.contexts_ = {1};
  table.us_[0] = base_us + per_row_us;
  table.us_[1] = base_us + 2 * per_row_us;
  return table;
}

double TimeTable::us(double rows, double context) const {
  if (rows_.empty()) return 0;
  const Place row = Locate(rows_, rows);
  const Place column = Locate(contexts_, context);
  const auto at_row = [&](std::size_t i) {
    const double* times = &us_[i * contexts_.size()];
    return Mix(times[column.low], times[column.high], column.share);
  };
  return Mix(at_row(row.low), at_row(row.high), row.share);
}

}  // namespace foretoken
