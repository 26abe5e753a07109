#include "core/kv/tap_rows.h"

#include <algorithm>

namespace foretoken {

TapPart AddTaps(const TapShape& reader, TapShape* kept) {
  std::vector<int>& points = kept->points;
  if (points.empty()) kept->hidden = reader.hidden;
  // (Clang 14 cannot use the standard library's std::ranges::search.)
  const auto found =
      std::search(points.begin(), points.end(), reader.points.begin(), reader.points.end());
  const TapPart part{.first = static_cast<int>(found - points.begin()) * kept->hidden,
                     .width = reader.width()};
  if (found == points.end()) {
    points.insert(points.end(), reader.points.begin(), reader.points.end());
  }
  return part;
}

}  // namespace foretoken
