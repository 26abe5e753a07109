#include "apps/lab/rollout/rollout_prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/files/temporary_testing.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RolloutPrompts : public ::testing::Test {
 protected:
  Result<std::vector<RolloutPrompt>> Parse(std::string_view lines, bool raw = false) const {
    return ParseRolloutPrompts(lines, "p.jsonl", {.tokenizer = *tokenizer_, .raw = raw});
  }
  std::string ErrorOf(std::string_view lines) const {
    const auto prompts = Parse(lines);
    return prompts.ok() ? "" : prompts.error().message;
  }

  const std::unique_ptr<Tokenizer> tokenizer_ =
      Tokenizer::Load(FORETOKEN_SOURCE_DIR "/models/demo-target").value();
};

TEST_F(RolloutPrompts, AreTextsChatsOrTokens) {
  const auto prompts = Parse(
      "{\"id\": \"a\", \"prompt\": \"Hello\"}\n\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}\n"
      "{\"id\": 9, \"tokens\": [1, 5, 7]}\n");
  ASSERT_TRUE(prompts.ok()) << prompts.error().message;
  ASSERT_THAT(*prompts, SizeIs(3));
  EXPECT_EQ((*prompts)[0].id, "a");
  EXPECT_EQ((*prompts)[1].id, 2);
  EXPECT_EQ((*prompts)[2].id, 9);
  EXPECT_EQ((*prompts)[0].tokens, (*prompts)[1].tokens);
  EXPECT_FALSE((*prompts)[0].continues_text);
  EXPECT_THAT((*prompts)[2].tokens, ElementsAre(1, 5, 7));
  EXPECT_TRUE((*prompts)[2].continues_text);
}

TEST_F(RolloutPrompts, AreTextsToGoOnWithWhereThatIsAsked) {
  const auto prompts = Parse("{\"prompt\": \"Hello\"}", /*raw=*/true);
  ASSERT_TRUE(prompts.ok());
  EXPECT_EQ((*prompts)[0].tokens, EncodePrompt(*tokenizer_, "Hello", /*chat=*/false).value());
  EXPECT_TRUE((*prompts)[0].continues_text);
}

TEST_F(RolloutPrompts, RefusesBadLines) {
  EXPECT_THAT(ErrorOf("{\"prompt\": \"a\"}\n[]"), HasSubstr("p.jsonl:2: not a JSON object"));
  EXPECT_THAT(ErrorOf("{\"text\": \"a\"}"), HasSubstr("no text in 'prompt'"));
  EXPECT_THAT(ErrorOf("{\"tokens\": []}"), HasSubstr("'tokens' is empty"));
  EXPECT_THAT(ErrorOf("{\"tokens\": [1, -1]}"), HasSubstr("'tokens' has -1"));
  EXPECT_THAT(ErrorOf("{\"tokens\": 3}"), HasSubstr("'tokens' is no list"));
  EXPECT_THAT(ErrorOf("{\"messages\": [{\"role\": \"user\"}]}"), HasSubstr("'content'"));
  EXPECT_THAT(ErrorOf("{\"messages\": [\"hi\"]}"), HasSubstr("'content'"));
  EXPECT_THAT(ErrorOf("{\"id\": [], \"prompt\": \"a\"}"), HasSubstr("neither a text nor"));
}

TEST_F(RolloutPrompts, OfSeveralFilesHaveIdsOfTheirOwn) {
  const TemporaryFolder folder;
  folder.Write("a.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n{\"prompt\": \"c\"}\n");
  folder.Write("b.txt", "Once upon a time\n\nOne day\n\nThe end\n");
  PromptOptions options;
  options.files = {folder.path() / "a.jsonl", folder.path() / "b.txt"};
  options.limit = 2;
  const auto prompts = ReadRolloutPrompts(options, {.tokenizer = *tokenizer_}, 100);
  ASSERT_TRUE(prompts.ok()) << prompts.error().message;
  ASSERT_THAT(*prompts, SizeIs(4));
  for (int i = 0; i < 4; ++i) EXPECT_EQ((*prompts)[i].id, i + 1);
  EXPECT_FALSE((*prompts)[1].continues_text);
  EXPECT_TRUE((*prompts)[2].continues_text);

  folder.Write("twice.jsonl", "{\"id\": 1, \"prompt\": \"a\"}\n{\"id\": 1, \"prompt\": \"b\"}\n");
  options.files = {folder.path() / "twice.jsonl"};
  const auto twice = ReadRolloutPrompts(options, {.tokenizer = *tokenizer_}, 100);
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.error().message, HasSubstr("two prompts have the id 1"));
  options.files = {folder.path() / "b.txt"};
  const auto longer = ReadRolloutPrompts(options, {.tokenizer = *tokenizer_}, 2);
  ASSERT_FALSE(longer.ok());
  EXPECT_THAT(longer.error().message, HasSubstr("the prompt 1 has"));
}

TEST(SampleSeed, IsOneOfItsOwnThatJsonHolds) {
  const std::uint64_t seed = SampleSeed(1, "a", 0);
  EXPECT_EQ(seed, SampleSeed(1, "a", 0));
  EXPECT_NE(seed, SampleSeed(1, "a", 1));
  EXPECT_NE(seed, SampleSeed(2, "a", 0));
  EXPECT_NE(seed, SampleSeed(1, "b", 0));
  EXPECT_NE(SampleSeed(1, 12, 0), SampleSeed(1, "12", 0));
  for (int sample = 0; sample < 100; ++sample) EXPECT_LT(SampleSeed(3, "a", sample), 1ULL << 53);
}

}  // namespace
}  // namespace foretoken
