#include "assembly/measure_times.h"

#include <gtest/gtest.h>

#include "assembly/engine_testing.h"

namespace foretoken {
namespace {

TEST(MeasureTimes, MeasuresNothingThatIsNotNeeded) {
  const MeasuredTimes times = MeasureTimes({.target = BundledTarget()}, {});
  EXPECT_TRUE(times.row_times.rows().empty());
  EXPECT_TRUE(times.costs.target.rows().empty());
}

TEST(MeasureTimes, RowsCostMoreTheMoreThereAre) {
  const MeasuredTimes times = MeasureTimes({.target = BundledTarget()}, {.rows = true});
  ASSERT_FALSE(times.row_times.rows().empty());
  EXPECT_LE(times.row_times.us(1, 0), times.row_times.us(64, 0));
  EXPECT_GE(times.knee_rows, 1);
  EXPECT_TRUE(times.costs.target.rows().empty());
}

TEST(MeasureTimes, TakesWhatIsKnownAsItIs) {
  MeasuredTimes known;
  known.row_times = TimeTable::Line(3, 1);
  known.costs.target = TimeTable::Line(5, 1);
  const MeasuredTimes times =
      MeasureTimes({.target = BundledTarget()}, {.rows = true, .costs = true}, known);
  EXPECT_EQ(times.row_times.us(1, 0), 4);
  EXPECT_EQ(times.costs.target.us(1, 0), 6);
}

// With the drafts' times too: SSD's own device and SD's share of the target's.
TEST(MeasureTimes, MeasuresTheDraftsThatAreThere) {
  const auto draft = LoadModel({.directory = BundledModel("demo-draft")}, BundledTarget()->device,
                               Precision::kBF16);
  ASSERT_TRUE(draft.ok());
  MeasuredTimes known;
  known.costs.target = TimeTable::Line(5, 1);
  const MeasuredTimes times =
      MeasureTimes({.target = BundledTarget(), .draft_on_target = draft->get()},
                   {.costs = true, .most_rows = 4}, known);
  EXPECT_FALSE(times.costs.draft_on_target.rows().empty());
  EXPECT_TRUE(times.costs.draft.rows().empty());
  EXPECT_EQ(times.costs.target_contention, 1);
}

}  // namespace
}  // namespace foretoken
