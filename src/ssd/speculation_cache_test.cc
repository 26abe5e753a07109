#include "ssd/speculation_cache.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(SpeculationCache, AnswersWithWhatIsThere) {
  SpeculationCache cache;
  cache.Reset(5);
  EXPECT_EQ(cache.Lookup({0, 10}), nullptr);
  EXPECT_TRUE(cache.Append(5, 0, {0, 10}, 100));
  EXPECT_TRUE(cache.Append(5, 1, {2, 10}, 200));
  EXPECT_TRUE(cache.Append(5, 0, {0, 10}, 101));
  ASSERT_NE(cache.Lookup({0, 10}), nullptr);
  EXPECT_EQ(cache.Lookup({0, 10})->chain.size(), 2);
  EXPECT_EQ(cache.Lookup({2, 10})->chain[0], 200);
  EXPECT_EQ(cache.Lookup({1, 10}), nullptr);
  EXPECT_EQ(cache.Lookup({0, 11}), nullptr);
}

TEST(SpeculationCache, StaleEpochsNeverHit) {
  SpeculationCache cache;
  cache.Reset(5);
  EXPECT_TRUE(cache.Append(5, 0, {0, 10}, 100));
  cache.Reset(6);
  EXPECT_EQ(cache.Lookup({0, 10}), nullptr);
  EXPECT_FALSE(cache.Append(5, 0, {0, 10}, 100));
  EXPECT_FALSE(cache.Append(7, 0, {0, 10}, 100));
  EXPECT_EQ(cache.Lookup({0, 10}), nullptr);
}

TEST(SpeculationCache, RefusesMessagesThatDoNotFit) {
  SpeculationCache cache;
  cache.Reset(1);
  EXPECT_FALSE(cache.Append(1, 1, {0, 10}, 100));  // Branch 0 has not been seen.
  EXPECT_FALSE(cache.Append(1, -1, {0, 10}, 100));
  EXPECT_TRUE(cache.Append(1, 0, {0, 10}, 100));
  EXPECT_FALSE(cache.Append(1, 0, {0, 11}, 100));  // Another outcome under the same number.
  for (int i = 1; i < kMaxProposal; ++i) EXPECT_TRUE(cache.Append(1, 0, {0, 10}, i));
  EXPECT_FALSE(cache.Append(1, 0, {0, 10}, 1));  // Longer than any proposal.
}

}  // namespace
}  // namespace foretoken
