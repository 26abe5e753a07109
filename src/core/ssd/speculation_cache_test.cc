#include "core/ssd/speculation_cache.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(SpeculationCache, AnswersWithWhatIsThere) {
  SpeculationCache cache;
  cache.Reset(5);
  EXPECT_FALSE(cache.Lookup({0, 10}).hit);
  EXPECT_TRUE(cache.Append(5, {0, 10}, 1, 0, 100));
  EXPECT_TRUE(cache.Append(5, {2, 10}, 1, 0, 200));
  EXPECT_TRUE(cache.Append(5, {0, 10}, 2, 1, 101));
  ASSERT_TRUE(cache.Lookup({0, 10}).hit);
  EXPECT_EQ(cache.Lookup({0, 10}).proposal.size(), 2);
  EXPECT_TRUE(cache.Lookup({0, 10}).proposal.IsChain());
  EXPECT_EQ(cache.Lookup({0, 10}).proposal.source, ProposalSource::kCache);
  EXPECT_EQ(cache.Lookup({2, 10}).proposal.tokens[0], 200);
  EXPECT_FALSE(cache.Lookup({1, 10}).hit);
  EXPECT_FALSE(cache.Lookup({0, 11}).hit);
}

TEST(SpeculationCache, StaleEpochsNeverHit) {
  SpeculationCache cache;
  cache.Reset(5);
  EXPECT_TRUE(cache.Append(5, {0, 10}, 1, 0, 100));
  cache.Reset(6);
  EXPECT_FALSE(cache.Lookup({0, 10}).hit);
  EXPECT_FALSE(cache.Append(5, {0, 10}, 1, 0, 100));
  EXPECT_FALSE(cache.Append(7, {0, 10}, 1, 0, 100));
  EXPECT_FALSE(cache.Lookup({0, 10}).hit);
}

TEST(SpeculationCache, HoldsTrees) {
  SpeculationCache cache;
  cache.Reset(1);
  EXPECT_TRUE(cache.Append(1, {4, 10}, 1, 0, 1));
  EXPECT_TRUE(cache.Append(1, {0, 10}, 1, 0, 2));
  EXPECT_TRUE(cache.Append(1, {4, 10}, 2, 0, 3));
  EXPECT_TRUE(cache.Append(1, {4, 10}, 3, 1, 4));
  const Proposal tree = cache.Lookup({4, 10}).proposal;
  EXPECT_EQ(tree.size(), 3);
  EXPECT_EQ(tree.ChildWith(0, 3), 2);
  EXPECT_EQ(tree.ChildWith(1, 4), 3);
  EXPECT_EQ(cache.Lookup({0, 10}).proposal.size(), 1);
}

// A record that was lost must not hang later tokens below the wrong node.
TEST(SpeculationCache, RefusesGapsAndUnknownParents) {
  SpeculationCache cache;
  cache.Reset(1);
  EXPECT_FALSE(cache.Append(1, {0, 10}, 2, 1, 5));
  EXPECT_FALSE(cache.Lookup({0, 10}).hit);
  EXPECT_TRUE(cache.Append(1, {0, 10}, 1, 0, 5));
  EXPECT_FALSE(cache.Append(1, {0, 10}, 1, 0, 6));
  EXPECT_FALSE(cache.Append(1, {0, 10}, 3, 2, 6));
  EXPECT_FALSE(cache.Append(1, {0, 10}, 2, 2, 6));
  EXPECT_FALSE(cache.Append(1, {0, 10}, 2, -1, 6));
  EXPECT_EQ(cache.Lookup({0, 10}).proposal.size(), 1);
}

TEST(SpeculationCache, RefusesMoreThanAnySpeculatorPrepares) {
  SpeculationCache cache;
  cache.Reset(1);
  for (int i = 1; i <= kMaxProposal; ++i) EXPECT_TRUE(cache.Append(1, {0, 10}, i, i - 1, i));
  EXPECT_FALSE(cache.Append(1, {0, 10}, kMaxProposal + 1, kMaxProposal, 1));
  int branches = 1;
  while (cache.Append(1, {1, branches}, 1, 0, 7)) ++branches;
  EXPECT_EQ(branches, 1024);
  EXPECT_EQ(cache.branches(), 1024);
}

TEST(SpeculationCache, DistributionsBelongToTheirProposalAndEpoch) {
  SpeculationCache cache;
  cache.Reset(7);
  const std::vector<TokenProbability> distribution = {{3, 0.75F}, {5, 0.25F}};
  EXPECT_FALSE(cache.SetDistribution(7, {0, 11}, 0, distribution)) << "nothing is prepared yet";
  EXPECT_TRUE(cache.Append(7, {0, 11}, 1, 0, 3));
  EXPECT_TRUE(cache.Append(7, {1, 12}, 1, 0, 5));
  EXPECT_FALSE(cache.SetDistribution(6, {1, 12}, 0, distribution));
  EXPECT_TRUE(cache.SetDistribution(7, {1, 12}, 0, distribution));
  const auto kind_of = [&](Outcome outcome) {
    return cache.Lookup(outcome).distributions->at(0).kind;
  };
  EXPECT_EQ(kind_of({1, 12}), DraftDistribution::Kind::kListed);
  EXPECT_EQ(kind_of({0, 11}), DraftDistribution::Kind::kPoint);
  cache.Reset(8);
  EXPECT_TRUE(cache.Append(8, {4, 2}, 1, 0, 3));
  EXPECT_TRUE(cache.Append(8, {1, 12}, 1, 0, 5));
  EXPECT_EQ(kind_of({1, 12}), DraftDistribution::Kind::kPoint)
      << "a distribution outlived its round";
}

}  // namespace
}  // namespace foretoken
