#include <gtest/gtest.h>

#include <vector>

#include "core/draft/registry.h"

namespace foretoken {
namespace {

class Anpd : public testing::Test {
 protected:
  std::vector<Token> Propose(SequenceId sequence, std::span<const Token> tokens, int lookahead) {
    DraftContext context = {.sequence = sequence,
                            .tokens = tokens,
                            .lookahead = lookahead,
                            .max_nodes = lookahead,
                            .proposal = &proposal_};
    drafter_->Propose(std::span(&context, 1));
    EXPECT_TRUE(proposal_.IsChain());
    return {proposal_.tokens.begin(), proposal_.tokens.end()};
  }

  const std::unique_ptr<Drafter> drafter_ = MakeDrafter(DrafterId::kAnpd, {});
  Proposal proposal_;
};

TEST_F(Anpd, TheLongestLevelThatKnowsDecides) {
  // After "4" alone comes 9 (twice), after "1 2 3 4" comes 5.
  const std::vector<Token> tokens = {1, 2, 3, 4, 5, 6, 4, 9, 7, 4, 9, 8, 1, 2, 3, 4};
  EXPECT_EQ(Propose(1, tokens, 1), std::vector<Token>{5});
  EXPECT_EQ(proposal_.source, ProposalSource::Of(DrafterId::kAnpd));
}

TEST_F(Anpd, AShorterLevelAnswersWhereTheLongerOnesDoNot) {
  // "8 4" is new; after "4" comes 9 more often than 5.
  const std::vector<Token> tokens = {4, 9, 1, 4, 5, 2, 4, 9, 3, 8, 4};
  EXPECT_EQ(Propose(1, tokens, 1), std::vector<Token>{9});
}

TEST_F(Anpd, DraftsAChainOfWhichEachTokenFollowsThoseBefore) {
  const std::vector<Token> tokens = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2};
  EXPECT_EQ(Propose(1, tokens, 6), (std::vector<Token>{3, 4, 1, 2, 3, 4}));
  EXPECT_TRUE(Propose(1, tokens, 0).empty());
}

TEST_F(Anpd, AdaptsToTheTextAsItGrows) {
  std::vector<Token> tokens = {1, 2, 1};
  EXPECT_EQ(Propose(1, tokens, 1), std::vector<Token>{2});
  tokens.insert(tokens.end(), {3, 1, 3, 1});
  EXPECT_EQ(Propose(1, tokens, 1), std::vector<Token>{3});
  // Among equally frequent tokens the one that came last counts.
  EXPECT_EQ(Propose(2, std::vector<Token>{1, 2, 1, 3, 1}, 1), std::vector<Token>{3});
}

TEST_F(Anpd, NothingFollowsWhatIsNew) {
  EXPECT_TRUE(Propose(1, std::vector<Token>{1, 2, 3}, 4).empty());
  EXPECT_EQ(proposal_.source, ProposalSource::kNone);
}

}  // namespace
}  // namespace foretoken
