#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace foretoken {

/// How much a datastore keeps, in how many pieces.
struct DatastoreLimits {
  std::uint64_t capacity_tokens = std::uint64_t{4} * 512 * 1024 * 1024;
  int max_segments = 8;  ///< At rest; one query looks at every one of them.

  /// No merge makes a segment larger than this, so that dropping the oldest drops a part only. Half
  /// of the segments may be that large; with fewer for the small ones, merging would go on and on.
  std::uint64_t segment_tokens() const;
};

/// What should be done next to segments, oldest first.
struct MaintenanceStep {
  bool evict_oldest = false;
  std::size_t first = 0;  ///< Otherwise [first, last) become one segment.
  std::size_t last = 0;
  friend bool operator==(const MaintenanceStep&, const MaintenanceStep&) = default;
};

/// Segments grow geometrically: one is merged with all newer ones once they are half as large
/// together, so that each token is merged O(log n) times and O(log n) segments remain. Only
/// neighbours are merged, which keeps the oldest apart. Nothing when all is well.
std::optional<MaintenanceStep> PlanMaintenance(std::span<const std::uint64_t> segment_tokens,
                                               const DatastoreLimits& limits);

}  // namespace foretoken
