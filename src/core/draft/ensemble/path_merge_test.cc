#include "core/draft/ensemble/path_merge.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/speculation/plan.h"

namespace foretoken {
namespace {

constexpr double kUsual = 0.5;
const AgreementRecord kNoRecord;
const AgreementChances kNothingSeen(kNoRecord, kNoRecord);

PathChances Unseen(double usual = kUsual) { return {PathRecord(), PathRecord(), usual}; }

Proposal Chain(const std::vector<Token>& tokens) {
  Proposal chain;
  for (const Token token : tokens) chain.Extend(token);
  return chain;
}

std::vector<Token> TokensOfTree(const Proposal& tree) {
  return {tree.tokens.begin(), tree.tokens.end()};
}

TEST(PathMerge, ATokenOfTwoProposalsIsOneNodeWithTheChildrenOfBoth) {
  PathMerge merge(2);
  merge.Add(0, Chain({5, 6, 7}), Unseen());
  merge.Add(1, Chain({5, 8}), Unseen());
  EXPECT_EQ(merge.size(), 4);
  Proposal tree;
  merge.Best(kNothingSeen, 9, 63, {}, &tree);
  ASSERT_EQ(tree.size(), 4);
  EXPECT_EQ(tree.tokens[0], 5);  // 1 - 0.5 * 0.5: the likeliest.
  EXPECT_EQ(tree.Children(1), 2);
  EXPECT_NE(tree.ChildWith(1, 6), 0);
  EXPECT_NE(tree.ChildWith(1, 8), 0);
  EXPECT_EQ(tree.parents[tree.ChildWith(tree.ChildWith(1, 6), 7) - 1], tree.ChildWith(1, 6));
}

TEST(PathMerge, WhatTwoAgreeOnComesBeforeWhatOneSays) {
  PathMerge merge(3);
  merge.Add(0, Chain({1, 2, 3}), Unseen());
  merge.Add(1, Chain({4, 5}), Unseen(0.45));
  merge.Add(2, Chain({4, 6}), Unseen(0.45));
  Proposal tree;
  merge.Best(kNothingSeen, 9, 2, {}, &tree);
  EXPECT_EQ(TokensOfTree(tree), (std::vector<Token>{4, 1}));  // 0.6975, 0.5; then 5 and 6, 0.314.
}

TEST(PathMerge, KeepsDepthAndNodes) {
  PathMerge merge(1);
  merge.Add(0, Chain({1, 2, 3, 4, 5}), Unseen());
  Proposal tree;
  merge.Best(kNothingSeen, 3, 63, {}, &tree);
  EXPECT_EQ(TokensOfTree(tree), (std::vector<Token>{1, 2, 3}));
  merge.Best(kNothingSeen, 9, 2, {}, &tree);
  EXPECT_EQ(TokensOfTree(tree), (std::vector<Token>{1, 2}));
  merge.Best(kNothingSeen, 9, 0, {}, &tree);
  EXPECT_EQ(tree.size(), 0);
}

TEST(PathMerge, AtAPriceOnlyWhatIsWorthIt) {
  PathMerge merge(1);
  merge.Add(0, Chain({1, 2, 3, 4}), Unseen());  // 0.5, 0.25, 0.125 ...
  Proposal tree;
  merge.Best(kNothingSeen, 9, 63, std::vector<double>{0.2}, &tree);
  EXPECT_EQ(tree.size(), 2);
  // A step that the first rows do not pay.
  merge.Best(kNothingSeen, 9, 63, std::vector<double>{0.9, 0, 0, 0}, &tree);
  EXPECT_EQ(tree.size(), 4);
  merge.Best(kNothingSeen, 9, 63, std::vector<double>{2}, &tree);
  EXPECT_EQ(tree.size(), 0);
}

TEST(PathMerge, RandomTreesKeepParentsBeforeChildrenAndEveryPathIsSomebodys) {
  std::mt19937 random(3);
  const auto below = [&](int limit) { return static_cast<int>(random() % limit); };
  PathMerge merge(4);
  std::vector<Proposal> proposals(4);
  Proposal tree;
  for (int round = 0; round < 300; ++round) {
    merge.Clear();
    for (std::size_t member = 0; member < proposals.size(); ++member) {
      Proposal& proposal = proposals[member];
      proposal.Clear();
      for (int i = below(kMaxProposal + 1); i > 0; --i) {
        const int parent = below(proposal.size() + 1);
        const Token token = below(6);
        if (proposal.ChildWith(parent, token) == 0) proposal.Append(parent, token);
      }
      merge.Add(member, proposal, Unseen(0.1 + 0.1 * below(9)));
    }
    const int most = below(kMaxProposal + 1);
    const int depth = 1 + below(9);
    merge.Best(kNothingSeen, depth, most, {}, &tree);
    EXPECT_LE(tree.size(), most);
    for (int node = 1; node <= tree.size(); ++node) {
      EXPECT_LT(tree.parents[node - 1], node);
      EXPECT_LE(tree.Depth(node), depth);
      EXPECT_EQ(tree.ChildWith(tree.parents[node - 1], tree.tokens[node - 1]), node);
      const auto path = PathTokens(tree, node);
      bool found = false;
      for (const Proposal& proposal : proposals) {
        int at = 0;
        bool there = true;
        for (const Token token : path) there = there && (at = proposal.ChildWith(at, token)) != 0;
        found = found || there;
      }
      EXPECT_TRUE(found);
    }
  }
}

// Two that copy one place are right together, or not at all.
TEST(PathMerge, WhatAgreementIsWorthIsSeen) {
  AgreementRecord all;
  AgreementRecord own;
  PathMerge merge(3);
  Proposal tree;
  const auto add = [&] {
    merge.Clear();
    merge.Add(0, Chain({1}), Unseen());
    merge.Add(1, Chain({1}), Unseen());
    merge.Add(2, Chain({2}), Unseen());
  };
  add();
  merge.Best({all, own}, 9, 1, {}, &tree);
  EXPECT_EQ(TokensOfTree(tree), std::vector<Token>{1});
  for (int round = 0; round < 200; ++round) {
    add();
    merge.Compare(std::vector<Token>{round % 3 == 0 ? 1 : 2, 3}, &all, &own);
  }
  add();
  merge.Best({all, own}, 9, 1, {}, &tree);
  EXPECT_EQ(TokensOfTree(tree), std::vector<Token>{2});
  // Alone the second member may be as good as before.
  EXPECT_NEAR(AgreementChances(all, own).Of({.members = AgreementRecord::Bit(1)}, kUsual), kUsual,
              0.01);
  EXPECT_NEAR(AgreementChances(all, own).Of({.members = AgreementRecord::Bit(2)}, kUsual), 2.0 / 3,
              0.1);
  // A sequence of which nothing is known does as others do.
  const AgreementRecord none;
  EXPECT_NEAR(AgreementChances(all, none).Of({.members = AgreementRecord::Bit(2)}, kUsual), 2.0 / 3,
              0.1);
}

TEST(PathMerge, WhatCameTrueIsCreditedToWhoeverProposedItFirst) {
  AgreementRecord record;
  AgreementRecord own;
  PathMerge merge(2);
  merge.Add(0, Chain({1, 2}), Unseen());
  merge.Add(1, Chain({1, 2, 3, 4}), Unseen());
  Proposal tree;
  merge.Best(kNothingSeen, 3, 63, {}, &tree);
  const PathMerge::Credits credits = merge.Compare(std::vector<Token>{1, 2, 3, 4}, &record, &own);
  EXPECT_EQ(credits[0], 2);
  EXPECT_EQ(credits[1], 1);  // The fourth was too deep to be proposed.
}

TEST(PathRecord, ChancesFollowWhatCameTrue) {
  PathRecord all;
  PathRecord own;
  for (int i = 0; i < 400; ++i) {
    all.Add(1, 1, i % 10 == 0 ? -1 : 0);
    all.Add(2, 1, i % 2 == 0 ? 0 : -1);
  }
  const PathChances of_all(all, own, kUsual);
  EXPECT_NEAR(of_all.At(1, 0), 0.9, 0.05);
  EXPECT_NEAR(of_all.At(2, 0), 0.5, 0.05);
  for (int i = 0; i < 400; ++i) own.Add(1, 1, -1);
  const PathChances of_own(all, own, kUsual);
  EXPECT_LT(of_own.At(1, 0), 0.2);
  EXPECT_EQ(of_own.At(2, 0), of_all.At(2, 0));
}

TEST(PathRecord, LevelsEndWhereTheyAreReachedTooSeldom) {
  const PathChances half = Unseen(0.5);
  EXPECT_EQ(half.Levels(1, 12, 0.2), 2);
  EXPECT_EQ(half.Levels(1, 1, 0.2), 1);
  EXPECT_EQ(half.Levels(1, 12, 0.6), 0);
  EXPECT_EQ(half.Levels(PathRecord::kRanks, 12, 0.2), 3);  // 0.664 a level.
}

}  // namespace
}  // namespace foretoken
