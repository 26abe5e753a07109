#include "core/speculation/lossy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace foretoken {
namespace {

TEST(LossyRule, TypicalAcceptsMoreWhereTheTargetIsLessSure) {
  const LossyRule rule{.kind = Lossy::kTypical, .epsilon = 0.2F, .delta = 0.5F};
  // H = 0: delta exp(0) is above epsilon.
  EXPECT_FLOAT_EQ(LeastAccepted(rule, std::vector<float>{0, 1, 0, 0}), 0.2F);
  // H = ln 4: 0.5 / 4.
  EXPECT_FLOAT_EQ(LeastAccepted(rule, std::vector<float>(4, 0.25F)), 0.125F);
}

TEST(LossyRule, RelaxedTakesTheLikeliestThatAreNearTheFirst) {
  const std::vector<float> p = {0.1F, 0.5F, 0.0F, 0.3F, 0.1F};
  const auto least = [&](int k, float margin) {
    return LeastAccepted({.kind = Lossy::kTopKRelaxed, .top_k = k, .margin = margin}, p);
  };
  EXPECT_FLOAT_EQ(least(2, 1.0F), 0.3F);
  EXPECT_FLOAT_EQ(least(2, 0.1F), 0.4F);
  EXPECT_GT(least(5, 1.0F), 0.0F);  // What a grammar forbids stays forbidden.
  EXPECT_LT(least(64, 1.0F), 1e-30F);
}

TEST(LossyRule, TheLikeliestChildIsTaken) {
  Proposal proposal;
  proposal.Append(0, 1);
  proposal.Append(0, 2);
  proposal.Append(1, 3);
  const std::vector<float> p = {0, 0.2F, 0.3F, 0.5F};
  EXPECT_EQ(LikeliestChild(proposal, 0, p, 0.1F), 2);
  EXPECT_EQ(LikeliestChild(proposal, 0, p, 0.3F), 2);
  EXPECT_EQ(LikeliestChild(proposal, 0, p, 0.31F), 0);
  EXPECT_EQ(LikeliestChild(proposal, 1, p, 0.31F), 3);
  EXPECT_EQ(LikeliestChild(proposal, 2, p, 0.0F), 0);
}

TEST(LossyRule, TheBestChildIsTheFirstOfEqualsThatDo) {
  Proposal proposal;
  for (const Token token : {1, 2, 3}) proposal.Append(0, token);
  const auto best = [&](std::vector<double> scores) {
    return BestChild(proposal, 0, [&](int child) { return scores[child - 1]; });
  };
  EXPECT_EQ(best({0.2, 0.7, 0.7}), 2);
  EXPECT_EQ(best({0, 0, 0.1}), 3);
  EXPECT_EQ(best({0, 0, 0}), 0);
}

TEST(LossyRule, NumbersThatSayNothingAreRefused) {
  const auto message = [](LossyRule rule) {
    const Status status = CheckLossyRule(rule);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.epsilon = 0}), "lossy_epsilon is 0; it must be above 0 and at most 1");
  EXPECT_EQ(message({.delta = 1.5F}), "lossy_delta is 1.5; it must be above 0 and at most 1");
  EXPECT_EQ(message({.top_k = 65}), "lossy_top_k is 65; it must be from 1 to 64");
  EXPECT_EQ(message({.margin = -1}), "lossy_margin is -1; it must be above 0 and at most 1");
  EXPECT_EQ(message({.approval = 1.5F}), "lossy_approval is 1.5; it must be from 0 to 1");
  EXPECT_EQ(message({.kind = Lossy::kJudge}),
            "the lossy rule judge needs a head: give its folder as lossy_judge");
  EXPECT_EQ(message({.kind = Lossy::kJudge, .judge = "folder"}), "");
  EXPECT_EQ(message({.kind = Lossy::kTypical, .judge = "folder"}),
            "lossy_judge is of the lossy rule judge, and another or none is chosen");
}

TEST(LossyRule, NamesLeadBack) {
  for (const Lossy rule : {Lossy::kNone, Lossy::kTypical, Lossy::kTopKRelaxed, Lossy::kJudge}) {
    const auto parsed = ParseLossy(LossyName(rule));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, rule);
  }
  EXPECT_EQ(ParseLossy("some").error().message,
            "'some' is not a lossy way to verify: choose one of none, typical, top-k-relaxed, "
            "judge");
}

}  // namespace
}  // namespace foretoken
