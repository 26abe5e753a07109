#include "apps/foretoken/common/prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files/temporary_testing.h"
#include "foretoken/chat_format.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(JsonPrompts, TakesPromptThenFirstTurnThenQuestion) {
  const auto prompts = ParseJsonPrompts(
      "{\"prompt\": \"a\", \"question\": \"no\"}\r\n\n"
      "{\"turns\": [\"b\", \"no\"], \"question_id\": 1, \"reference\": [\"2\"]}\n"
      "{\"question\": \"c\\n\\u00e9\", \"answer\": \"#### 3\"}",
      "file");
  ASSERT_TRUE(prompts.ok()) << prompts.error().message;
  EXPECT_THAT(prompts->prompts, ElementsAre("a", "b", "c\né"));
  EXPECT_THAT(prompts->answers, ElementsAre("", "2", "#### 3"));
}

TEST(JsonPrompts, NamesTheLineThatIsWrong) {
  const auto broken = ParseJsonPrompts("{\"prompt\": \"a\"}\n\n{\"prompt\": ", "set.jsonl");
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error().message, HasSubstr("set.jsonl:3: not a JSON object"));
  for (const char* line :
       {"{}", "3", "[\"a\"]", "{\"prompt\": 1}", "{\"turns\": []}", "{\"turns\": [[\"a\"]]}"}) {
    const auto missing = ParseJsonPrompts(line, "set.jsonl");
    ASSERT_FALSE(missing.ok()) << line;
    EXPECT_THAT(missing.error().message, HasSubstr("set.jsonl:1: no text")) << line;
  }
}

TEST(TextPrompts, SplitsAtBlankLines) {
  EXPECT_THAT(ParseTextPrompts("\n one\ntwo \n \t\r\nthree\n\n\n", {}),
              ElementsAre("one\ntwo", "three"));
  EXPECT_THAT(ParseTextPrompts(" \n\n", {}), IsEmpty());
}

TEST(TextPrompts, KeepsTheFirstWords) {
  EXPECT_THAT(ParseTextPrompts("Once upon  a\ntime there\n\nshort", 4),
              ElementsAre("Once upon  a\ntime", "short"));
}

TEST(PromptFile, IsToldApartByItsFirstCharacter) {
  const TemporaryFolder folder;
  folder.Write("json", "  {\"question\": \"why?\"}\n");
  auto set = ReadPromptFile((folder.path() / "json").string(), {});
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_FALSE(set->plain_text);
  EXPECT_THAT(set->prompts, ElementsAre("why?"));
  EXPECT_EQ(set->name, "json");

  folder.Write("text", "Once upon a time\n");
  set = ReadPromptFile((folder.path() / "text").string(), 2);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_TRUE(set->plain_text);
  EXPECT_THAT(set->prompts, ElementsAre("Once upon"));
}

TEST(PromptFile, RefusesWhatHoldsNoPrompt) {
  EXPECT_THAT(ReadPromptFile("/nonexistent/file", {}).error().message,
              HasSubstr("cannot read the prompt file '/nonexistent/file'"));
  EXPECT_THAT(ReadPromptFile("/tmp", {}).error().message, HasSubstr("cannot read"));
  const TemporaryFolder folder;
  folder.Write("empty", " \n");
  EXPECT_THAT(ReadPromptFile((folder.path() / "empty").string(), {}).error().message,
              HasSubstr("holds no prompt"));
}

TEST(RandomPrompts, AreTheSameForTheSameSeedAndInRange) {
  const EncodedSet set = RandomSet(100, 64, 3, 7);
  ASSERT_EQ(set.prompts.size(), 3U);
  EXPECT_EQ(set.prompts, RandomSet(100, 64, 3, 7).prompts);
  EXPECT_NE(set.prompts[0], set.prompts[1]);
  EXPECT_NE(set.prompts, RandomSet(100, 64, 3, 8).prompts);
  for (const auto& prompt : set.prompts) {
    EXPECT_EQ(prompt.size(), 64U);
    for (const Token token : prompt) {
      EXPECT_GE(token, 0);
      EXPECT_LT(token, 100);
    }
  }
}

/// A word is a token; the beginning-of-sequence token is 1.
class WordTokenizer : public Tokenizer {
 public:
  explicit WordTokenizer(bool has_template) : has_template_(has_template) {}
  int vocabulary() const override { return 100; }
  std::vector<Token> Encode(std::string_view text, bool add_bos, bool) const override {
    std::vector<Token> tokens(add_bos ? 1 : 0, 1);
    tokens.resize(tokens.size() + 1 + std::count(text.begin(), text.end(), ' '), 2);
    return tokens;
  }
  std::string_view TokenBytes(Token) const override { return "word"; }
  std::string_view TokenName(Token) const override { return "word"; }
  bool IsSpecial(Token) const override { return false; }
  bool DropsLeadingSpace() const override { return false; }
  std::optional<Token> bos() const override { return 1; }
  std::vector<Token> eos() const override { return {}; }
  std::vector<std::string> notes() const override { return {}; }
  const std::string& fingerprint() const override { return fingerprint_; }
  Result<std::vector<Token>> EncodeChat(const ChatInput& chat) const override {
    if (!has_template_) return InvalidInput("no template");
    std::vector<Token> tokens = Encode(chat.messages.back().content, true, false);
    tokens.push_back(3);
    return tokens;
  }
  Result<std::string> ChatText(const ChatInput&) const override { return InvalidInput("no text"); }
  bool has_chat_template() const override { return has_template_; }
  Status UseChatTemplate(std::string_view) override { return InvalidInput("no template"); }
  const ChatFormat& chat_format() const override { return chat_format_; }
  void UseChatFormat(const ChatFormat& format) override { chat_format_ = format; }

 private:
  bool has_template_;
  std::string fingerprint_;
  ChatFormat chat_format_;
};

TEST(EncodeSet, UsesTheTemplateForQuestionsOnly) {
  const WordTokenizer with(true);
  const WordTokenizer without(false);
  PromptSet set{"set", {"a b"}, false};
  const auto encode = [&set](const Tokenizer& tokenizer, const PromptOptions& options) {
    return EncodeSet(tokenizer, set, options, 100, 10);
  };
  EXPECT_THAT(encode(with, {})->prompts, ElementsAre(ElementsAre(1, 2, 2, 3)));
  EXPECT_THAT(encode(without, {})->prompts, ElementsAre(ElementsAre(1, 2, 2)));
  EXPECT_THAT(encode(with, {.raw = true})->prompts, ElementsAre(ElementsAre(1, 2, 2)));
  EXPECT_FALSE(encode(without, {.chat = true}).ok());
  set.plain_text = true;
  EXPECT_FALSE(encode(with, {})->chat);
  EXPECT_TRUE(encode(with, {.chat = true})->chat);
}

TEST(EncodeSet, LeavesOutWhatDoesNotFitAndStopsAtTheLimit) {
  const WordTokenizer tokenizer(false);
  const PromptSet set{"set", {"a", "a b c d", "b", "c"}, true};
  const auto encoded = EncodeSet(tokenizer, set, {.limit = 2}, 6, 3);
  ASSERT_TRUE(encoded.ok()) << encoded.error().message;
  EXPECT_EQ(encoded->prompts.size(), 2U);
  EXPECT_EQ(encoded->too_long, 1);
  const auto none = EncodeSet(tokenizer, set, {}, 4, 3);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("no prompt of 'set' fits a context of 4 tokens"));
}

}  // namespace
}  // namespace foretoken
