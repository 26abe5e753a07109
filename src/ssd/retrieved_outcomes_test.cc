#include "ssd/retrieved_outcomes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

template <typename T, std::size_t Capacity>
std::vector<T> List(const StaticVector<T, Capacity>& items) {
  return {items.begin(), items.end()};
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
  EXPECT_THAT(List(OutcomesBeside(proposal, retrieved)),
              ElementsAre(Outcome{0, 20}, Outcome{1, 21}, Outcome{3, 22}));
  EXPECT_THAT(List(OutcomesBeside(proposal, {})), IsEmpty());
  EXPECT_THAT(List(OutcomesBeside({}, Chain({5, 6}))), ElementsAre(Outcome{0, 5}));
}

TEST(RetrievedOutcomes, AFewOfEachNode) {
  Proposal retrieved;
  for (Token token = 0; token < 10; ++token) retrieved.Append(0, token);
  EXPECT_EQ(OutcomesBeside({}, retrieved).size(), std::size_t{kMaxRetrievedPerNode});
}

TEST(RetrievedOutcomes, LearnsHowOftenItIsRight) {
  RetrievedOutcomes retrieved;
  const std::vector<Outcome> expected = {{0, 7}, {0, 8}, {1, 9}};
  const double before = retrieved.probability(0);
  retrieved.Assign(expected);
  EXPECT_THAT(List(retrieved.Beside(0, std::vector<Token>{7, 1})), ElementsAre(8));
  EXPECT_THAT(List(retrieved.Beside(2, {})), IsEmpty());
  retrieved.Observe(0, 8);
  EXPECT_GT(retrieved.probability(0), before);
  const double right = retrieved.probability(0);
  retrieved.Observe(1, 9);  // Nobody asked for what was expected there.
  EXPECT_EQ(retrieved.probability(0), right);

  retrieved.Assign(expected);
  EXPECT_THAT(List(retrieved.Beside(0, {})), ElementsAre(7, 8));
  retrieved.Observe(0, 8);
  EXPECT_LT(retrieved.probability(0), right);
  EXPECT_GT(retrieved.probability(1), before);
}

}  // namespace
}  // namespace foretoken
