#include "ssd/speculation_cache.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(SpeculationCache, AnswersWithWhatIsThere) {
  SpeculationCache cache;
  cache.Reset(5);
  EXPECT_EQ(cache.Lookup({0, 10}), nullptr);
  EXPECT_TRUE(cache.Append(5, {0, 10}, 100));
  EXPECT_TRUE(cache.Append(5, {2, 10}, 200));
  EXPECT_TRUE(cache.Append(5, {0, 10}, 101));
  ASSERT_NE(cache.Lookup({0, 10}), nullptr);
  EXPECT_EQ(cache.Lookup({0, 10})->chain.size(), 2);
  EXPECT_EQ(cache.Lookup({2, 10})->chain[0], 200);
  EXPECT_EQ(cache.Lookup({1, 10}), nullptr);
  EXPECT_EQ(cache.Lookup({0, 11}), nullptr);
}

TEST(SpeculationCache, StaleEpochsNeverHit) {
  SpeculationCache cache;
  cache.Reset(5);
  EXPECT_TRUE(cache.Append(5, {0, 10}, 100));
  cache.Reset(6);
  EXPECT_EQ(cache.Lookup({0, 10}), nullptr);
  EXPECT_FALSE(cache.Append(5, {0, 10}, 100));
  EXPECT_FALSE(cache.Append(7, {0, 10}, 100));
  EXPECT_EQ(cache.Lookup({0, 10}), nullptr);
}

TEST(SpeculationCache, BranchesMayBeginInAnyOrder) {
  SpeculationCache cache;
  cache.Reset(1);
  EXPECT_TRUE(cache.Append(1, {4, 10}, 1));
  EXPECT_TRUE(cache.Append(1, {0, 10}, 2));
  EXPECT_TRUE(cache.Append(1, {4, 10}, 3));
  EXPECT_EQ(cache.Lookup({4, 10})->chain[1], 3);
  EXPECT_EQ(cache.Lookup({0, 10})->chain.size(), 1);
}

TEST(SpeculationCache, RefusesMoreThanAnySpeculatorPrepares) {
  SpeculationCache cache;
  cache.Reset(1);
  for (int i = 0; i < kMaxProposal; ++i) EXPECT_TRUE(cache.Append(1, {0, 10}, i));
  EXPECT_FALSE(cache.Append(1, {0, 10}, 1));
  int branches = 1;
  while (cache.Append(1, {1, branches}, 7)) ++branches;
  EXPECT_EQ(branches, 1024);
  EXPECT_EQ(cache.branches().size(), 1024);
}

}  // namespace
}  // namespace foretoken
