#include "core/datastore/storage/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Manifest Example() {
  return {.tokenizer = {"tiny", std::string(64, 'a'), 5},
          .next_number = 9,
          .first_log = 7,
          .segments = {{1, 100, 2, {{20'000, 1}, {20'003, 1}}}, {8, 50, 1, {{20'007, 1}}}}};
}

TEST(Manifest, IsReadAsItWasWritten) {
  const std::string text = FormatManifest(Example());
  EXPECT_THAT(text, HasSubstr("\nsegment 1 100 2 20000:1 20003:1\nsegment 8 50 1 20007:1\n"));
  const auto read = ParseManifest(text, "here");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->segments, Example().segments);
  EXPECT_EQ(read->first_log, 7U);
}

TEST(Manifest, ThatOfTheFirstVersionHasNoDays) {
  const std::string text = "foretoken datastore 1\ntokenizer tiny\nfingerprint " +
                           std::string(64, 'a') +
                           "\nvocabulary 5\nnext 9\nlog 7\nsegment 1 100 2\nsegment 8 50 1\n"
                           "checksum 732d38bff666f9c0\n";
  const auto read = ParseManifest(text, "here");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_THAT(read->segments, ElementsAre(Manifest::SegmentEntry{1, 100, 2, {}},
                                          Manifest::SegmentEntry{8, 50, 1, {}}));
}

TEST(Manifest, DaysOfMoreOrFewerDocumentsThanThereAreAreDamage) {
  for (const std::uint64_t documents : {0, 2}) {
    Manifest manifest = Example();
    manifest.segments[1].arrivals[0].documents = documents;
    const auto read = ParseManifest(FormatManifest(manifest), "here");
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().message, "here: is damaged");
  }
}

TEST(Manifest, ArrivalsOfOneDayAreOne) {
  std::vector<Arrivals> arrivals;
  for (const int day : {3, 3, 4, 3}) AddArrivals({day, 2}, &arrivals);
  AddArrivals({5, 0}, &arrivals);
  EXPECT_THAT(arrivals, ElementsAre(Arrivals{3, 4}, Arrivals{4, 2}, Arrivals{3, 2}));
  ArrivalDays days(arrivals);
  std::vector<int> each;
  for (int i = 0; i < 8; ++i) each.push_back(days.Next());
  EXPECT_THAT(each, ElementsAre(3, 3, 3, 3, 4, 4, 3, 3));
}

}  // namespace
}  // namespace foretoken
