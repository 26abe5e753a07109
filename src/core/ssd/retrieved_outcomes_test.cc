#include "core/ssd/retrieved_outcomes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/draft/retrieval/candidate_fusion.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Outcome> Outcomes(const OutcomeList& list) {
  std::vector<Outcome> outcomes;
  for (const RetrievedOutcome& item : list) outcomes.push_back(item.outcome);
  return outcomes;
}

template <typename Candidates>
std::vector<Token> Tokens(const Candidates& candidates) {
  std::vector<Token> tokens;
  for (const auto& candidate : candidates) tokens.push_back(candidate.token);
  return tokens;
}

Proposal Chain(std::initializer_list<Token> tokens) {
  Proposal chain;
  for (const Token token : tokens) chain.Extend(token);
  return chain;
}

TEST(RetrievedOutcomes, BesideTheProposalAsFarAsTheTreeGoesAlong) {
  const Proposal proposal = Chain({10, 11, 12});
  Proposal retrieved;
  retrieved.Append(0, 10);  // 1: the proposal's first node.
  retrieved.Append(0, 20);  // 2: another token there.
  retrieved.Append(1, 21);  // 3: another one after node 1.
  retrieved.Append(1, 11);  // 4: the proposal's second node.
  retrieved.Append(2, 11);  // 5: below a token that the proposal has not.
  retrieved.Append(4, 12);  // 6: its leaf,
  retrieved.Append(6, 22);  // 7: and a token behind it.
  const std::vector<CandidateScore> scores = {{0.5}, {0.4}, {0.25}, {0.2}, {0.2}, {0.1}, {0.02}};
  const OutcomeList list = OutcomesBeside(proposal, retrieved, scores);
  EXPECT_THAT(Outcomes(list), ElementsAre(Outcome{0, 20}, Outcome{1, 21}, Outcome{3, 22}));
  EXPECT_FLOAT_EQ(list[0].score, 0.4F);
  EXPECT_FLOAT_EQ(list[1].score, 0.5F);  // Given that its node is reached.
  EXPECT_FLOAT_EQ(list[2].score, 0.2F);
  EXPECT_THAT(Outcomes(OutcomesBeside(proposal, {}, {})), IsEmpty());
  EXPECT_THAT(Outcomes(OutcomesBeside({}, Chain({5, 6}), scores)), ElementsAre(Outcome{0, 5}));
}

TEST(RetrievedOutcomes, AFewOfEachNode) {
  Proposal retrieved;
  for (Token token = 0; token < 10; ++token) retrieved.Append(0, token);
  const std::vector<CandidateScore> scores(10, {0.1});
  EXPECT_EQ(OutcomesBeside({}, retrieved, scores).size(), std::size_t{kMaxRetrievedPerNode});
}

TEST(RetrievedOutcomes, LearnsHowOftenItIsRight) {
  RetrievalRates rates;
  RetrievedOutcomes retrieved;
  const std::vector<RetrievedOutcome> expected = {{{0, 7}, 0.9F}, {{0, 8}, 0.1F}, {{1, 9}, 0.4F}};
  const double likely = rates.Chance(false, 0.9);
  const double unlikely = rates.Chance(false, 0.1);
  EXPECT_LT(unlikely, likely);
  retrieved.Assign(expected);
  EXPECT_THAT(Tokens(retrieved.Beside(0, false, std::vector<Token>{7, 1}, rates)), ElementsAre(8));
  EXPECT_THAT(Tokens(retrieved.Beside(2, false, {}, rates)), IsEmpty());
  retrieved.Observe(0, false, 8, &rates);
  EXPECT_GT(rates.Chance(false, 0.1), unlikely);
  EXPECT_EQ(rates.Chance(false, 0.9), likely);  // The draft had that one.
  const double other = rates.Chance(false, 0.4);
  retrieved.Observe(1, false, 9, &rates);
  EXPECT_EQ(rates.Chance(false, 0.4), other);    // Nobody asked for what was expected there.
  EXPECT_EQ(rates.Chance(true, 0.1), unlikely);  // Leaves are another matter.

  // What is right most often comes first, whatever its score.
  for (int i = 0; i < 100; ++i) {
    retrieved.Assign(expected);
    retrieved.Beside(0, false, {}, rates);
    retrieved.Observe(0, false, 8, &rates);
  }
  EXPECT_LT(rates.Chance(false, 0.9), likely);
  retrieved.Assign(expected);
  EXPECT_THAT(Tokens(retrieved.Beside(0, false, {}, rates)), ElementsAre(8, 7));
}

}  // namespace
}  // namespace foretoken
