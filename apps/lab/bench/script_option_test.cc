#include "apps/lab/bench/script_option.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(ScriptOption, Parses) {
  EXPECT_DOUBLE_EQ(ParseScript("0.8")->acceptance, 0.8);
  EXPECT_DOUBLE_EQ(ParseScript("0.8, 0.5")->hit, 0.5);
  for (const char* text : {"", "1.2", "-0.1", "0.8,2", "0.8,0.5,0.1", "nan"}) {
    EXPECT_FALSE(ParseScript(text).ok()) << text;
  }
}

TEST(ScriptOption, AnswersAreSaidBehindTheirPrompts) {
  const std::vector<PromptAnswer> answers = {{.prompt = {1, 2}, .text = "a"},
                                             {.prompt = {1}, .text = "b"}};
  const AnswerText answer = SayingThese(answers);
  EXPECT_EQ(answer(std::vector<Token>{1}), "b");
  EXPECT_EQ(answer(std::vector<Token>{1, 2}), "a");
  EXPECT_EQ(answer(std::vector<Token>{2}), std::nullopt);
  EXPECT_EQ(SayingThese({}), nullptr);
}

}  // namespace
}  // namespace foretoken
