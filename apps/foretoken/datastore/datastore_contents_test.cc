#include "apps/foretoken/datastore/datastore_contents.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(DatastoreContents, OccurrencesDoNotOverlap) {
  EXPECT_EQ(CountOccurrences("a cat and a cat", "cat"), 2U);
  EXPECT_EQ(CountOccurrences("aaaaa", "aa"), 2U);
  EXPECT_EQ(CountOccurrences("cat", "cats"), 0U);
  EXPECT_EQ(CountOccurrences("", "cat"), 0U);
}

TEST(DatastoreContents, SurroundingsCutNoCharacter) {
  EXPECT_EQ(Surroundings("a cat sat", 2, 3), "a cat sat");
  const std::string many(100, '.');
  EXPECT_EQ(Surroundings(many + "cat" + many, 100, 3),
            std::string(40, '.') + "cat" + std::string(40, '.'));
  // Characters of three bytes: 13 of them fit in the 40 bytes on either side.
  std::string wide;
  for (int i = 0; i < 30; ++i) wide += "\u20ac";
  const std::string around(Surroundings(wide + "cat" + wide, 90, 3));
  EXPECT_EQ(around.size(), 2U * 39 + 3);
  EXPECT_EQ(around.find("cat"), 39U);
}

TEST(DatastoreContents, DaysAreDates) {
  EXPECT_EQ(FormatDay(0), "1970-01-01");
  EXPECT_EQ(FormatDay(20'417), "2025-11-25");
}

}  // namespace
}  // namespace foretoken
