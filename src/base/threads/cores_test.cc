#include "base/threads/cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <thread>

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Cores, FormatJoinsRanges) {
  EXPECT_EQ(FormatCores({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(FormatCores({5}), "5");
  EXPECT_EQ(FormatCores({1, 3, 4}), "1,3-4");
  EXPECT_EQ(FormatCores({}), "");
}

TEST(Cores, ParseReadsBackWhatFormatWrites) {
  CoreSet all = AvailableCores();
  std::sort(all.begin(), all.end());
  Result<CoreSet> parsed = ParseCores(FormatCores(all));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(*parsed, all);
}

TEST(Cores, ParseRefusesNonsense) {
  for (const char* text : {"", "a", "-1", "0-", "0,", ",0", "3-1", "0,0", "1,0", "0-1,1", "0 1",
                           "0;1", "99999999999", "0-999999999"}) {
    Result<CoreSet> parsed = ParseCores(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidInput);
  }
}

TEST(Cores, ParseNamesAnUnavailableCore) {
  Result<CoreSet> parsed = ParseCores("4095");
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(parsed.error().message, HasSubstr("core 4095 is not available"));
}

TEST(Cores, PhysicalCoresAreAPrefixOfTheAvailable) {
  const std::vector<int> all = AvailableCores();
  const std::vector<int> physical = AvailablePhysicalCores();
  ASSERT_FALSE(physical.empty());
  ASSERT_LE(physical.size(), all.size());
  EXPECT_TRUE(std::equal(physical.begin(), physical.end(), all.begin()));
}

TEST(Cores, DefaultSplit) {
  EXPECT_THAT(DefaultCoreSplit({3}).target, ElementsAre(3));
  EXPECT_THAT(DefaultCoreSplit({3}).draft, ElementsAre(3));
  EXPECT_THAT(DefaultCoreSplit({0, 1}).target, ElementsAre(0));
  EXPECT_THAT(DefaultCoreSplit({0, 1}).draft, ElementsAre(1));
  std::vector<int> many;
  for (int core = 0; core < 32; ++core) many.push_back((core * 2) % 32 + core / 16);
  const CoreSplit split = DefaultCoreSplit(many);
  EXPECT_EQ(split.draft.size(), 4U);
  EXPECT_EQ(split.target.size(), 28U);
  EXPECT_TRUE(std::is_sorted(split.target.begin(), split.target.end()));
}

TEST(Cores, PinMovesTheThread) {
  const int core = AvailableCores().back();
  int seen = -1;
  std::thread([&] {
    PinCurrentThread(core);
    seen = sched_getcpu();
  }).join();
  EXPECT_EQ(seen, core);
}

TEST(Cores, PinningDoesNotNarrowWhatIsAvailable) {
  const std::vector<int> before = AvailableCores();
  std::vector<int> after;
  std::thread([&] {
    PinCurrentThread(before.back());
    after = AvailableCores();
  }).join();
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace foretoken
