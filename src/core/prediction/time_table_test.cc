#include "core/prediction/time_table.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace foretoken {
namespace {

TEST(TimeTable, InterpolatesAndExtrapolates) {
  const std::vector<int> rows = {1, 8, 16};
  const std::vector<int> contexts = {100, 300};
  const Result<TimeTable> made =
      TimeTable::Make(rows, contexts, std::vector<double>{10, 14, 17, 28, 33, 44});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const TimeTable& table = *made;
  EXPECT_EQ(table.us(1, 100), 10);
  EXPECT_EQ(table.us(8, 300), 28);
  EXPECT_EQ(table.us(16, 300), 44);
  EXPECT_DOUBLE_EQ(table.us(1, 200), 12);
  EXPECT_DOUBLE_EQ(table.us(12, 100), 25);
  EXPECT_DOUBLE_EQ(table.us(4.5, 200), (12 + 22.5) / 2);
  EXPECT_DOUBLE_EQ(table.us(24, 100), 49);  // The slope goes on upwards.
  EXPECT_DOUBLE_EQ(table.us(1, 500), 18);
  EXPECT_DOUBLE_EQ(table.us(0.5, 50), 10);  // The slope does not go on downwards.
}

// With tiles of four rows the last two points may lie within one tile or on either side of a step.
TEST(TimeTable, StepsExtrapolateWithTheSlopeOfTheUpperHalf) {
  const std::vector<int> rows = {1, 8, 9, 12, 13, 16};
  const Result<TimeTable> table =
      TimeTable::Make(rows, std::vector<int>{64}, std::vector<double>{10, 20, 30, 30, 40, 40});
  ASSERT_TRUE(table.ok());
  EXPECT_DOUBLE_EQ(table->us(16, 64), 40);
  EXPECT_DOUBLE_EQ(table->us(24, 64), 60);
  EXPECT_DOUBLE_EQ(table->us(32, 64), 80);
}

TEST(TimeTable, NoiseDoesNotExtrapolateDownwards) {
  const Result<TimeTable> table =
      TimeTable::Make(std::vector<int>{1, 4}, std::vector<int>{128}, std::vector<double>{10, 9});
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->us(64, 128), 9);
  EXPECT_EQ(table->us(64, 4000), 9);
}

TEST(TimeTable, OnePointIsAConstantAndNoneIsFree) {
  const Result<TimeTable> table =
      TimeTable::Make(std::vector<int>{1}, std::vector<int>{1}, std::vector<double>{7});
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->us(30, 1000), 7);
  EXPECT_EQ(TimeTable().us(3, 10), 0);
  EXPECT_DOUBLE_EQ(TimeTable::Line(5, 2).us(10, 400), 25);
  EXPECT_DOUBLE_EQ(TimeTable::Line(5, 2).us(1, 1), 7);
}

TEST(TimeTable, RefusesNonsense) {
  const auto message = [](std::vector<int> rows, std::vector<int> contexts,
                          std::vector<double> us) {
    const Result<TimeTable> table = TimeTable::Make(rows, contexts, us);
    return table.ok() ? std::string("accepted") : table.error().message;
  };
  EXPECT_NE(message({}, {1}, {}).find("points of rows"), std::string::npos);
  EXPECT_NE(message({2, 2}, {1}, {1, 1}).find("rows 2 after 2"), std::string::npos);
  EXPECT_NE(message({0}, {1}, {1}).find("rows 0"), std::string::npos);
  EXPECT_NE(message({1}, {9, 8}, {1, 1}).find("contexts 8 after 9"), std::string::npos);
  EXPECT_NE(message({1, 2}, {1}, {1}).find("1 times for 2 rows"), std::string::npos);
  EXPECT_NE(message({1}, {1}, {0}).find("must be positive"), std::string::npos);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(message({1}, {1}, {nan}).find("must be positive"), std::string::npos);
  EXPECT_NE(message(std::vector<int>(21, 1), {1}, {}).find("21 points"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
