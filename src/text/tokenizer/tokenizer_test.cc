#include "text/tokenizer/tokenizer.h"

#include <gmock/gmock.h>

#include "json/json.h"

#include "base/files/temporary_testing.h"
#include "foretoken/chat_format.h"
#include "foretoken/fill_marks.h"
#include "text/tokenizer/bpe/byte_alphabet.h"
#include "text/tokenizer/files.h"
#include "text/tokenizer/tokenizer_testing.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string LoadError(const std::filesystem::path& directory) {
  const auto result = LoadTokenizerFolder(directory);
  return result.ok() ? "(loaded)" : result.error().message;
}

TEST(TokenizerLoad, ErrorsSayWhatIsWrong) {
  TemporaryFolder directory;
  EXPECT_THAT(LoadError(directory.path() / "nowhere"), HasSubstr("is not a readable directory"));
  EXPECT_THAT(LoadError(directory.path()), HasSubstr("holds no tokenizer"));

  directory.Write("tokenizer.json", R"({"model": {"vocab": {"a": 0)");
  EXPECT_THAT(LoadError(directory.path()), HasSubstr("tokenizer.json is not a JSON object"));
  directory.Write("tokenizer_config.json", "[]");
  EXPECT_THAT(LoadError(directory.path()), HasSubstr("tokenizer_config.json is not a JSON object"));
  directory.Write("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "a"}}})");
  EXPECT_THAT(LoadError(directory.path()), HasSubstr("the added token 'a' has no id"));
  directory.Write("tokenizer_config.json", "{}");
  directory.Write("tokenizer.model", "\x0A\x7F");
  EXPECT_THAT(LoadError(directory.path()), HasSubstr("tokenizer.model is no SentencePiece model"));
  std::filesystem::resize_file(directory.path() / "tokenizer.model", kMaxTokenizerFile + 1);
  EXPECT_THAT(LoadError(directory.path()), HasSubstr("at most"));
}

TEST(TokenizerLoad, FilesThatAreDirectories) {
  TemporaryFolder directory;
  std::filesystem::create_directories(directory.path() / "tokenizer.json");
  EXPECT_THAT(LoadError(directory.path()), HasSubstr("tokenizer.json is not a readable file"));
}

/// Writes vocab.json of all bytes and "he", merges.txt and a configuration.
void WriteGpt2Folder(const TemporaryFolder& directory) {
  Json vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[SpellBytes(std::string(1, static_cast<char>(byte)))] = byte;
  }
  vocabulary["he"] = 256;
  vocabulary["<|endoftext|>"] = 257;
  directory.Write("vocab.json", vocabulary.dump());
  directory.Write("merges.txt", "#version: 0.2\nh e\n");
  directory.Write("tokenizer_config.json",
                  R"({"tokenizer_class": "GPT2Tokenizer", "eos_token": "<|endoftext|>"})");
}

TEST(TokenizerLoad, VocabularyAndMerges) {
  TemporaryFolder directory;
  WriteGpt2Folder(directory);
  const auto tokenizer = MustLoad(directory.path());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_THAT(tokenizer->Encode("he!<|endoftext|>", true, true), ElementsAre(256, '!', 257));
  EXPECT_THAT(tokenizer->eos(), ElementsAre(257));

  directory.Write("merges.txt", "h\n");
  EXPECT_THAT(LoadError(directory.path()), HasSubstr("the line 'h'"));
  directory.Write("vocab.json", R"({"a": "b"})");
  EXPECT_THAT(LoadError(directory.path()), HasSubstr("from tokens to their ids"));
  directory.Write("tokenizer_config.json", R"({"tokenizer_class": "BloomTokenizer"})");
  EXPECT_THAT(LoadError(directory.path()), HasSubstr("not 'BloomTokenizer'"));
}

TEST(TokenizerLoad, ChatTemplateFromAListOrAFile) {
  TemporaryFolder directory;
  WriteGpt2Folder(directory);
  Json config = {{"tokenizer_class", "GPT2Tokenizer"},
                 {"added_tokens_decoder",
                  {{"258", {{"content", "<|im_start|>"}, {"special", true}}},
                   {"259", {{"content", "<|im_end|>"}, {"special", true}}}}},
                 {"chat_template",
                  {{{"name", "tool_use"}, {"template", "?"}},
                   {{"name", "default"}, {"template", "<|im_start|>{{ bos_token }}"}}}}};
  directory.Write("tokenizer_config.json", config.dump());
  EXPECT_EQ(*MustLoad(directory.path())->ChatText({}), "<|im_start|>");
  config["bos_token"] = "<|im_end|>";
  config["add_bos_token"] = true;
  config["pad_token"] = "<pad>";
  directory.Write("tokenizer_config.json", config.dump());
  directory.Write("chat_template.jinja", "{{ bos_token }}{{ pad_token }}{{ messages[0].content }}");
  const auto tokenizer = MustLoad(directory.path());
  const ChatInput chat{{{"user", "h<|im_start|>"}}};
  // The template's own beginning counts, once; what the user wrote is no mark.
  EXPECT_EQ(*tokenizer->ChatText(chat), "<pad>h<|im_start|>");
  const std::vector<Token> tokens = tokenizer->EncodeChat(chat).value();
  EXPECT_EQ(tokens.front(), 259);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 259), 1);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 258), 0);
  // What the template does not write is put first all the same.
  ASSERT_TRUE(tokenizer->UseChatTemplate("<|im_start|>h").ok());
  EXPECT_THAT(tokenizer->EncodeChat(chat).value(), ElementsAre(259, 258, 'h'));

  directory.Write("chat_template.jinja", "a\n{% for %}");
  const auto broken = MustLoad(directory.path());
  ASSERT_NE(broken, nullptr);
  EXPECT_FALSE(broken->has_chat_template());
  EXPECT_THAT(broken->EncodeChat(chat).error().message, HasSubstr("cannot be read: line 2"));
  EXPECT_FALSE(broken->UseChatTemplate("{{").ok());
  EXPECT_TRUE(broken->UseChatTemplate("x").ok() && broken->has_chat_template());
}

TEST(TokenizerLoad, MarksOfGaps) {
  TemporaryFolder directory;
  WriteGpt2Folder(directory);
  EXPECT_FALSE(FindFillMarks(*MustLoad(directory.path())).complete());
  const auto added = [](const char* content) {
    return Json{{"content", content}, {"special", true}};
  };
  Json config = {{"tokenizer_class", "GPT2Tokenizer"},
                 {"added_tokens_decoder",
                  {{"258", added("<|fim_middle|>")},
                   {"259", added("<|fim_prefix|>")},
                   {"260", added("<|fim_suffix|>")},
                   {"261", added("<|file_sep|>")}}}};
  directory.Write("tokenizer_config.json", config.dump());
  const FillMarks marks = FindFillMarks(*MustLoad(directory.path()));
  EXPECT_TRUE(marks.complete());
  EXPECT_EQ(marks.middle, 258);
  EXPECT_EQ(marks.prefix, 259);
  EXPECT_EQ(marks.suffix, 260);
  EXPECT_EQ(marks.file, 261);
  EXPECT_EQ(marks.repository, -1);
  EXPECT_EQ(marks.pad, -1);
}

// As transformers chooses: "tool_use" for chats with tools, where there is one.
TEST(TokenizerLoad, ChatsWithToolsHaveATemplateOfTheirOwn) {
  const ChatInput chat{{{"user", "x"}}};
  ChatInput with_tools = chat;
  with_tools.tools = R"([{"type": "function", "function": {"name": "now"}}])";
  const std::string hermes(BuiltInChatTemplate("hermes").value());
  Json config = {
      {"tokenizer_class", "GPT2Tokenizer"},
      {"chat_template",
       {{{"name", "default"}, {"template", "<think></think>{{ messages[0].content }}"}},
        {{"name", "tool_use"}, {"template", "tools: {{ tools[0].function.name }}" + hermes}},
        {{"name", "rag"}, {"template", "documents"}}}}};
  TemporaryFolder listed;
  WriteGpt2Folder(listed);
  listed.Write("tokenizer_config.json", config.dump());
  const auto tokenizer = MustLoad(listed.path());
  EXPECT_EQ(*tokenizer->ChatText(chat), "<think></think>x");
  EXPECT_THAT(*tokenizer->ChatText(with_tools), testing::StartsWith("tools: now<|im_start|>"));
  // The form of calls is that template's, that of thoughts the usual one's.
  EXPECT_EQ(tokenizer->chat_format().calls, FindChatFormat(hermes).calls);
  EXPECT_EQ(tokenizer->chat_format().reasoning.close, "</think>");
  // What a user gives is for all chats.
  ASSERT_TRUE(tokenizer->UseChatTemplate("y").ok());
  EXPECT_EQ(*tokenizer->ChatText(with_tools), "y");

  // Files of their own go before the configuration, all of them.
  TemporaryFolder files;
  WriteGpt2Folder(files);
  files.Write("tokenizer_config.json", config.dump());
  std::filesystem::create_directory(files.path() / "additional_chat_templates");
  files.Write("additional_chat_templates/tool_use.jinja", "{{ tools | length }} tool");
  EXPECT_EQ(*MustLoad(files.path())->ChatText(with_tools), "1 tool");
  EXPECT_THAT(MustLoad(files.path())->ChatText(chat).error().message, HasSubstr("'default'"));
  files.Write("chat_template.jinja", "usual");
  EXPECT_EQ(*MustLoad(files.path())->ChatText(chat), "usual");
  EXPECT_EQ(*MustLoad(files.path())->ChatText(with_tools), "1 tool");
  files.Write("additional_chat_templates/tool_use.jinja", "{% if %}");
  EXPECT_EQ(*MustLoad(files.path())->ChatText(chat), "usual");
  EXPECT_THAT(MustLoad(files.path())->ChatText(with_tools).error().message, HasSubstr("line 1"));
}

// The beginning of Llama 3's own list, where ids are ranks and every cut of a token is a merge.
TEST(TokenizerLoad, Ranks) {
  TemporaryFolder directory;
  directory.Write("tokenizer.model", "YQ== 0\nYg== 1\nYWI= 2\nYWJi 3\n");  // a b ab abb
  const auto tokenizer = MustLoad(directory.path());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->vocabulary(), 4 + 256);
  EXPECT_EQ(tokenizer->bos(), 4);
  EXPECT_THAT(tokenizer->Encode("abb", true, false), ElementsAre(4, 3));
  EXPECT_THAT(tokenizer->Encode("aab<|eot_id|>", false, true), ElementsAre(0, 2, 13));
  directory.Write("tokenizer.model", "YQ== 0\nY! 1\n");
  EXPECT_THAT(LoadError(directory.path()), HasSubstr("line 2"));
}

}  // namespace
}  // namespace foretoken
