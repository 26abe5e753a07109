#include "core/model/judge/judge_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/files/temporary_testing.h"
#include "core/model/judge/judge_testing.h"

namespace foretoken {
namespace {

using testing::HasSubstr;

std::vector<BFloat16> State(const std::vector<float>& values) {
  std::vector<BFloat16> state;
  for (const float value : values) state.push_back(FloatToBFloat16(value));
  return state;
}

TEST(JudgeHead, ApprovesByTheStateAndTheBias) {
  const TemporaryFolder folder;
  WriteJudge(folder.path(), {1, -2, 0.5F}, -1);
  const auto head = JudgeHead::Open(folder.path(), {.hidden = 3, .tokenizer = {}});
  ASSERT_TRUE(head.ok()) << head.error().message;
  EXPECT_EQ(head->hidden(), 3);
  // 1 * 2 - 2 * 0.5 + 0.5 * 4 - 1
  EXPECT_DOUBLE_EQ(head->Approval(State({2, 0.5F, 4}).data()), 1 / (1 + std::exp(-2.0)));
  EXPECT_DOUBLE_EQ(head->Approval(State({1, 0, 0}).data()), 0.5);
}

class JudgeFolder : public testing::Test {
 protected:
  std::string ErrorOf(int hidden = 2, std::string_view tokenizer = "abcd") {
    const auto head = JudgeHead::Open(folder_.path(), {.hidden = hidden, .tokenizer = tokenizer});
    return head.ok() ? "" : head.error().message;
  }

  TemporaryFolder folder_;
};

TEST_F(JudgeFolder, IsOfOneTarget) {
  WriteJudge(folder_.path(), {1, 2}, 0, "abcd");
  EXPECT_EQ(ErrorOf(), "");
  EXPECT_EQ(ErrorOf(2, ""), "");  // A target without a tokenizer.
  EXPECT_THAT(ErrorOf(3), HasSubstr("reads states of 2 numbers, and the target's have 3"));
  EXPECT_THAT(ErrorOf(2, "dcba"), HasSubstr("trained for a target with another tokenizer"));
}

TEST_F(JudgeFolder, WhatIsNoHeadIsRefusedInASentence) {
  EXPECT_THAT(ErrorOf(), HasSubstr("a judge's folder has config.json and model.safetensors"));
  folder_.Write("config.json", "[]");
  EXPECT_THAT(ErrorOf(), HasSubstr("not a JSON object"));
  folder_.Write("config.json", R"({"model_type": "llama", "hidden_size": 2})");
  EXPECT_THAT(ErrorOf(), HasSubstr("model_type"));
  folder_.Write("config.json", R"({"model_type": "judge", "hidden_size": 2})");
  EXPECT_THAT(ErrorOf(), HasSubstr("model.safetensors"));
  WriteJudge(folder_.path(), {1, 2}, std::numeric_limits<float>::infinity());
  EXPECT_THAT(ErrorOf(), HasSubstr("'judge.bias' has numbers that are not finite"));
}

TEST_F(JudgeFolder, TensorsAreTheTwoOfAHead) {
  WriteJudge(folder_.path(), {1, 2}, 0);
  const std::vector<float> values = {1, 2};
  const auto bytes = std::as_bytes(std::span(values));
  const auto write = [&](const std::vector<SafetensorsEntry>& entries) {
    ASSERT_TRUE(WriteSafetensors(folder_.path() / "model.safetensors", {}, entries).ok());
  };
  const SafetensorsEntry weight{"judge.weight", "F32", {2}, bytes};
  const SafetensorsEntry bias{"judge.bias", "F32", {1}, bytes.first(4)};
  write({weight});
  EXPECT_THAT(ErrorOf(), HasSubstr("lacks tensor 'judge.bias' [1]"));
  write({{"judge.weight", "F32", {1, 2}, bytes}, bias});
  EXPECT_THAT(ErrorOf(), HasSubstr("'judge.weight' is not a row of 2 numbers"));
  write({weight, bias, {"judge.scale", "F32", {1}, bytes.first(4)}});
  EXPECT_THAT(ErrorOf(), HasSubstr("has tensor 'judge.scale', which is none of a judge's"));
  write({{"judge.weight", "I32", {2}, bytes}, bias});
  EXPECT_THAT(ErrorOf(), HasSubstr("lacks tensor 'judge.weight'"));
}

}  // namespace
}  // namespace foretoken
