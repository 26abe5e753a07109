// Judge decoding with whole engines: heads that approve everything and nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/temporary_testing.h"
#include "core/model/judge/judge_testing.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

constexpr StopRules kJudgeStop{.max_tokens = 64};

class JudgeTest : public testing::Test {
 protected:
  // A head that says the same of every token.
  LossyRule Rule(float logit, float approval = 0.5F) {
    const std::size_t hidden = BundledTarget()->model->config().hidden;
    WriteJudge(folder_.path(), std::vector<float>(hidden), logit);
    return {.kind = Lossy::kJudge, .judge = folder_.path().string(), .approval = approval};
  }

  static std::vector<Collector::Output> Outputs(Mode mode, const EngineConfig& config,
                                                const SamplingParams& sampling) {
    const auto engine = MakeEngine(mode, config, BundledTarget(), BundledDraft());
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return Generate(**engine, StoryPrompts(), sampling, kJudgeStop);
  }

  static std::string ErrorOf(const LossyRule& rule) {
    const auto engine = MakeEngine(Mode::kSd, {.lossy = rule}, BundledTarget(), BundledDraft());
    return engine.ok() ? "" : engine.error().message;
  }

  TemporaryFolder folder_;
};

EngineConfig WithRule(const LossyRule& rule, int width = 1) {
  EngineConfig config{.max_batch = 3, .lossy = rule};
  config.plan.tree_width = width;
  if (width > 1) config.plan.max_nodes = 12;
  return config;
}

TEST_F(JudgeTest, AHeadThatApprovesNothingIsExact) {
  for (const float temperature : {0.0F, 1.0F}) {
    const SamplingParams sampling{.temperature = temperature, .seed = 3};
    const auto exact = Outputs(Mode::kAr, {.max_batch = 3}, sampling);
    for (const Mode mode : {Mode::kSd, Mode::kSsd}) {
      const auto judged = Outputs(mode, WithRule(Rule(-3)), sampling);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        EXPECT_EQ(judged[i].tokens, exact[i].tokens);
        EXPECT_EQ(judged[i].stats.lossy, 0);
        EXPECT_EQ(judged[i].stats.lossy_rule, Lossy::kJudge);
      }
    }
    const auto tree = Outputs(Mode::kSd, WithRule(Rule(0.9F, 1), 3), sampling);
    for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_EQ(tree[i].tokens, exact[i].tokens);
  }
}

TEST_F(JudgeTest, AHeadThatApprovesEverythingAcceptsEveryProposedToken) {
  for (const Mode mode : {Mode::kSd, Mode::kSsd}) {
    for (const auto& output : Outputs(mode, WithRule(Rule(3)), {})) {
      EXPECT_GT(output.stats.lossy, 0);
      for (std::size_t depth = 0; depth < std::size(output.stats.reached_at); ++depth) {
        EXPECT_EQ(output.stats.accepted_at[depth], output.stats.reached_at[depth]) << depth;
      }
    }
  }
  for (const auto& output : Outputs(Mode::kSd, WithRule(Rule(3), 3), {})) {
    EXPECT_GT(output.stats.lossy, 0);
    EXPECT_EQ(output.stats.accepted_at[0], output.stats.reached_at[0]);
  }
}

TEST_F(JudgeTest, NeverAcceptsWhatTheSamplerLeavesOut) {
  // With top_k = 1 nothing but the likeliest token is left.
  const SamplingParams one{.temperature = 1, .top_k = 1, .seed = 3};
  const auto exact = Outputs(Mode::kAr, {.max_batch = 3}, one);
  const auto judged = Outputs(Mode::kSd, WithRule(Rule(3)), one);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_EQ(judged[i].tokens, exact[i].tokens);
    EXPECT_EQ(judged[i].stats.lossy, 0);
  }
}

TEST_F(JudgeTest, RulesWithoutAHeadOrForAnotherAreRefused) {
  LossyRule rule = Rule(0);
  rule.kind = Lossy::kTypical;
  EXPECT_THAT(ErrorOf(rule), testing::HasSubstr("lossy_judge is of the lossy rule judge"));
  rule = {.kind = Lossy::kJudge};
  EXPECT_THAT(ErrorOf(rule), testing::HasSubstr("give its folder as lossy_judge"));
  rule.judge = (folder_.path() / "nowhere").string();
  EXPECT_THAT(ErrorOf(rule), testing::HasSubstr("a judge's folder has config.json"));
  WriteJudge(folder_.path(), {1, 2}, 0);
  rule.judge = folder_.path().string();
  EXPECT_THAT(ErrorOf(rule), testing::HasSubstr("reads states of 2 numbers"));
}

}  // namespace
}  // namespace foretoken
