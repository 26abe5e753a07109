#include "core/draft/suffix/suffix_drafter.h"

#include <gtest/gtest.h>

#include <numeric>

namespace foretoken {
namespace {

using Tokens = std::vector<Token>;

class Suffix : public testing::Test {
 protected:
  Tokens Propose(SequenceId sequence, const Tokens& tokens, int most = 63,
                 std::uint64_t scope = 0) {
    proposal_.Clear();
    proposal_.Extend(7);  // The proposal of the round before.
    DraftContext context = {.sequence = sequence,
                            .tokens = tokens,
                            .scope = scope,
                            .lookahead = most,
                            .max_nodes = most,
                            .proposal = &proposal_};
    drafter_.Propose(std::span(&context, 1));
    return {proposal_.tokens.begin(), proposal_.tokens.end()};
  }
  void Remember(const Tokens& output, std::uint64_t scope = 0) {
    drafter_.Remember({.tokens = output, .scope = scope});
  }
  std::vector<int> Parents() const { return {proposal_.parents.begin(), proposal_.parents.end()}; }

  SuffixDrafter drafter_;
  Proposal proposal_;
};

Tokens Counting(Token first, int count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

Tokens Joined(std::initializer_list<Tokens> parts) {
  Tokens joined;
  for (const Tokens& part : parts) joined.insert(joined.end(), part.begin(), part.end());
  return joined;
}

TEST_F(Suffix, SpeculatesTheFurtherTheLongerTheMatch) {
  const Tokens text = Counting(100, 200);
  // A match of p tokens, then 2 p tokens of what followed it.
  for (const int p : {1, 3, 10}) {
    Remember(text, /*scope=*/1);
    const Tokens end = Joined({Tokens{5}, Counting(120, p)});
    EXPECT_EQ(Propose(p, end, 63, 1), Counting(120 + p, 2 * p));
    EXPECT_TRUE(proposal_.IsChain());
    EXPECT_EQ(proposal_.source, ProposalSource::Of(DrafterId::kSuffix));
  }
  EXPECT_EQ(Propose(99, Counting(150, 40), 63, 1), Counting(190, 63));
  EXPECT_EQ(Propose(99, Counting(150, 40), 6, 1), Counting(190, 6));
  EXPECT_TRUE(Propose(99, Counting(150, 40), 0, 1).empty());
  EXPECT_EQ(proposal_.source, ProposalSource::kNone);
}

TEST_F(Suffix, LongPatternsTellApartWhatShortOnesDoNot) {
  // The last 20 tokens are those of two texts, the 21st from the end is that of one.
  const Tokens same = Counting(200, 20);
  Remember(Joined({Tokens{1}, same, Counting(300, 50)}));
  for (int i = 0; i < 3; ++i) Remember(Joined({Tokens{2}, same, Counting(400, 50)}));
  EXPECT_EQ(Propose(1, Joined({Tokens{1}, same}), 8), Counting(300, 8));
  EXPECT_EQ(Propose(2, Joined({Tokens{2}, same}), 8), Counting(400, 8));
  EXPECT_EQ(Propose(3, Joined({Tokens{3}, same}), 2), Counting(400, 2));
}

TEST_F(Suffix, AShortPatternOfSureContinuationsBeatsALongOneOfDoubtful) {
  // After "1 2 3" any of ten tokens came, each once and last of its text; after "9 2 3", ten times,
  // 50 51 52 53.
  for (Token token = 0; token < 10; ++token) {
    Remember(Tokens{1, 2, 3, static_cast<Token>(60 + token)});
    Remember(Tokens{9, 2, 3, 50, 51, 52, 53});
  }
  // By the long one: six nodes of 0.1. By "2 3": 50 to 53 with 0.5 each.
  EXPECT_EQ(Propose(1, Tokens{1, 2, 3}), (Tokens{50, 51, 52, 53}));
}

// D by hand: after "1" came 2 in three of four texts, and 3 in one; after 2 came 4 twice and 5.
TEST_F(Suffix, ATreeGrowsByItsLikeliestLeaf) {
  Remember(Tokens{8, 1, 2, 4});
  Remember(Tokens{8, 1, 2, 4});
  Remember(Tokens{8, 1, 2, 5});
  Remember(Tokens{8, 1, 3, 6});
  // 2: 0.75; 4 below it: 0.5; 3: 0.25 and 5 below 2: 0.25, the shallower first.
  EXPECT_EQ(Propose(1, Tokens{8, 1}), (Tokens{2, 4, 3, 5}));
  EXPECT_EQ(Parents(), (std::vector<int>{0, 1, 0, 1}));
}

TEST_F(Suffix, WhatIsUnlikelyIsNotProposed) {
  for (Token token = 0; token < 11; ++token) {
    Remember(Tokens{1, 2, static_cast<Token>(60 + token)});
  }
  EXPECT_TRUE(Propose(1, Tokens{1, 2}).empty());
}

TEST_F(Suffix, ItsOwnTextIsThereAtOnceAndOthersOutputsOnceTheyEnded) {
  EXPECT_EQ(Propose(1, Tokens{1, 2, 3, 4, 1, 2}, 2), (Tokens{3, 4}));
  Tokens other = {7, 7, 5};
  EXPECT_TRUE(Propose(2, other).size() <= 1);
  other.insert(other.end(), {6, 8, 9});
  Propose(2, other);
  EXPECT_TRUE(Propose(3, Tokens{5, 6}).empty());
  drafter_.Forget(2);
  drafter_.Remember({.tokens = other, .prompt = 2});
  EXPECT_EQ(Propose(3, Tokens{5, 6}), (Tokens{8, 9}));
  // The prompt is no output.
  EXPECT_TRUE(Propose(4, Tokens{3, 7}).empty());
}

TEST_F(Suffix, OutputsAreFoundInTheirScopeOnly) {
  Remember(Tokens{1, 2, 3}, 7);
  EXPECT_EQ(Propose(1, Tokens{1, 2}, 4, 7), Tokens{3});
  EXPECT_TRUE(Propose(2, Tokens{1, 2}, 4, 8).empty());
  EXPECT_TRUE(Propose(3, Tokens{1, 2}, 4, 0).empty());
  for (std::uint64_t scope = 100; scope < 108; ++scope) Remember(Tokens{1, 2, 3}, scope);
  EXPECT_TRUE(Propose(4, Tokens{1, 2}, 4, 7).empty());
}

TEST_F(Suffix, TheOldestOutputsGoByGenerations) {
  Remember(Tokens{1, 2, 3});
  const auto filler = [](Token token) { return Tokens(SuffixDrafter::kGenerationTokens, token); };
  Remember(filler(50));
  EXPECT_EQ(Propose(1, Tokens{1, 2}), Tokens{3});
  Remember(filler(51));
  EXPECT_TRUE(Propose(1, Tokens{1, 2}).empty());
}

}  // namespace
}  // namespace foretoken
