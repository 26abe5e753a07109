#include "apps/foretoken/server/api/gap_prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace foretoken::server {
namespace {

// Any tokens of the bundled model may stand for marks.
constexpr FillMarks kMarks = {.prefix = 100, .suffix = 101, .middle = 102, .pad = 103};

class GapPromptTest : public testing::Test {
 protected:
  // The prompt as text, marks in brackets.
  std::string Text(const ApiGap& gap, const FillMarks& marks, int most = 1000) const {
    std::string text;
    const std::vector<Token> prompt = GapPrompt(gap, *tokenizer_, marks, most);
    EXPECT_EQ(prompt.front(), tokenizer_->bos());
    for (std::size_t i = 1; i < prompt.size(); ++i) {
      const bool mark = prompt[i] >= 100 && prompt[i] < 110;
      text += mark ? "[" + std::to_string(prompt[i]) + "]"
                   : std::string(tokenizer_->TokenBytes(prompt[i]));
    }
    return text;
  }

  const std::unique_ptr<Tokenizer> tokenizer_ =
      Tokenizer::Load(FORETOKEN_SOURCE_DIR "/models/demo-target").value();
};

TEST_F(GapPromptTest, EachPartStandsBehindItsMark) {
  const std::string text = Text({.before = "The cat", .behind = "home."}, kMarks);
  EXPECT_EQ(text, "[100] The cat[101] home.[102]");
}

TEST_F(GapPromptTest, FilesComeFirst) {
  const ApiGap gap = {
      .before = "a", .behind = "b", .files = {{"x.py", "the first"}, {"y.py", "the second"}}};
  FillMarks marks = kMarks;
  marks.repository = 104;
  marks.file = 105;
  const std::string text = Text(gap, marks);
  EXPECT_THAT(text, testing::StartsWith("[104] myproject\n[105] x.py\n"));
  EXPECT_THAT(text, testing::HasSubstr("the first[105] y.py\n"));
  EXPECT_THAT(text, testing::EndsWith("[105] filename\n[100] a[101] b[102]"));
  // Where not all fit the last ones do.
  const int whole = GapPrompt(gap, *tokenizer_, marks, 1000).size();
  const std::string less = Text(gap, marks, whole - 1);
  EXPECT_THAT(less, testing::Not(testing::HasSubstr("the first")));
  EXPECT_THAT(less, testing::HasSubstr("the second"));
  // What stands around the gap is never left out.
  EXPECT_THAT(Text(gap, marks, 1), testing::EndsWith("[105] filename\n[100] a[101] b[102]"));
  // Without marks of files a line divides them.
  EXPECT_THAT(Text(gap, kMarks), testing::HasSubstr("--- snippet ---"));
}

TEST(GapEnds, AreTheMarksThatCannotFillAGap) {
  EXPECT_THAT(GapEnds(kMarks), testing::ElementsAre(103));
  EXPECT_THAT(GapEnds({}), testing::ElementsAre());
}

}  // namespace
}  // namespace foretoken::server
