#include "core/datastore/storage/maintenance.h"

#include <algorithm>
#include <numeric>

#include "base/numbers/integers.h"
#include "core/datastore/index/token_text.h"

namespace foretoken {

std::uint64_t DatastoreLimits::segment_tokens() const {
  // Half of what positions can count leaves room for the separators.
  return std::clamp(capacity_tokens / static_cast<std::uint64_t>((max_segments + 1) / 2),
                    std::uint64_t{1}, kMaxTextEntries / 2);
}

std::optional<MaintenanceStep> PlanMaintenance(std::span<const std::uint64_t> tokens,
                                               const DatastoreLimits& limits) {
  const std::size_t count = tokens.size();
  if (count < 2) return std::nullopt;
  const std::uint64_t most = limits.segment_tokens();
  if (std::accumulate(tokens.begin(), tokens.end(), std::uint64_t{0}) > limits.capacity_tokens) {
    return MaintenanceStep{.evict_oldest = true};
  }
  std::uint64_t newer = tokens.back();
  std::size_t first = count - 1;
  for (std::size_t i = count - 1; i-- > 0 && newer + tokens[i] <= most;) {
    if (tokens[i] < 2 * newer) first = i;
    newer += tokens[i];
  }
  if (first < count - 1) return MaintenanceStep{.first = first, .last = count};
  if (count <= Size(limits.max_segments)) return std::nullopt;

  std::size_t smallest = 0;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (tokens[i] + tokens[i + 1] < tokens[smallest] + tokens[smallest + 1]) smallest = i;
  }
  if (tokens[smallest] + tokens[smallest + 1] <= most) {
    return MaintenanceStep{.first = smallest, .last = smallest + 2};
  }
  return MaintenanceStep{.evict_oldest = true};
}

}  // namespace foretoken
