#include "core/datastore/storage/maintenance.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace foretoken {
namespace {

std::optional<MaintenanceStep> Plan(const std::vector<std::uint64_t>& tokens,
                                    std::uint64_t capacity, int max_segments) {
  return PlanMaintenance(tokens, {.capacity_tokens = capacity, .max_segments = max_segments});
}

TEST(Maintenance, MergesWhatIsNotHalfAgainAsLarge) {
  EXPECT_EQ(Plan({}, 8000, 8), std::nullopt);
  EXPECT_EQ(Plan({100}, 8000, 8), std::nullopt);
  EXPECT_EQ(Plan({100, 50}, 8000, 8), std::nullopt);
  EXPECT_EQ(Plan({99, 50}, 8000, 8), (MaintenanceStep{.first = 0, .last = 2}));
  EXPECT_EQ(Plan({400, 100, 51}, 8000, 8), (MaintenanceStep{.first = 1, .last = 3}));
  EXPECT_EQ(Plan({290, 100, 51}, 8000, 8), (MaintenanceStep{.first = 0, .last = 3}));
}

TEST(Maintenance, NoSegmentGrowsPastItsShare) {
  EXPECT_EQ(Plan({1000, 900}, 7000, 8), std::nullopt);
  EXPECT_EQ(Plan({900, 60, 50}, 4000, 8), (MaintenanceStep{.first = 1, .last = 3}));
}

TEST(Maintenance, TooManySegments) {
  EXPECT_EQ(Plan({1000, 300, 90, 20}, 4000, 3), (MaintenanceStep{.first = 2, .last = 4}));
  // No two of these fit one segment.
  const std::uint64_t large = 2'000'000'000;
  EXPECT_EQ(Plan({large, large, large}, 10 * large, 2), (MaintenanceStep{.evict_oldest = true}));
}

TEST(Maintenance, TheOldestGoesPastTheCapacity) {
  EXPECT_EQ(Plan({10, 10, 10, 10}, 39, 8), (MaintenanceStep{.evict_oldest = true}));
  EXPECT_EQ(Plan({40}, 39, 8), std::nullopt);
}

// Runs of one size arriving for ever: what is kept, in how many pieces, and what merging costs.
TEST(Maintenance, StaysBounded) {
  const DatastoreLimits limits = {.capacity_tokens = 100'000, .max_segments = 8};
  std::vector<std::uint64_t> tokens;
  std::uint64_t merged = 0;
  for (int arrival = 1; arrival <= 3000; ++arrival) {
    tokens.push_back(100);
    while (const auto step = PlanMaintenance(tokens, limits)) {
      if (step->evict_oldest) {
        tokens.erase(tokens.begin());
        continue;
      }
      const auto first = tokens.begin() + step->first;
      const auto last = tokens.begin() + step->last;
      *first = std::accumulate(first, last, std::uint64_t{0});
      merged += *first;
      tokens.erase(first + 1, last);
    }
    const std::uint64_t total = std::accumulate(tokens.begin(), tokens.end(), std::uint64_t{0});
    ASSERT_LE(tokens.size(), 8U);
    ASSERT_LE(total, limits.capacity_tokens);
    if (arrival > 1000) {
      ASSERT_GE(total, limits.capacity_tokens / 2);
    }
  }
  EXPECT_LT(merged, 3000 * 100 * 10U);
}

}  // namespace
}  // namespace foretoken
