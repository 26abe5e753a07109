#include "tokenizer/chat_template.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

constexpr char kChatMl[] =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' "
    "}}{% endif %}";
constexpr char kLlama3[] =
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
    "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim "
    "+ '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
    "{{ content }}{% endfor %}";

class ChatTemplateTest : public ::testing::Test {
 protected:
  static std::vector<AddedToken> Marks() {
    std::vector<AddedToken> tokens;
    for (const char* content :
         {"<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}) {
      AddedToken token;
      token.id = static_cast<Token>(tokens.size());
      token.content = content;
      token.special = true;
      tokens.push_back(token);
    }
    return tokens;
  }

  std::string Render(std::string_view jinja, const std::vector<ChatMessage>& messages) const {
    const auto chat = ChatTemplate::Recognise(jinja, tokens_);
    if (!chat.has_value()) return "(unknown)";
    std::string text;
    for (const ChatPart& part : chat->Render(messages)) {
      text += part.text;
      if (part.mark != nullptr) text += part.mark->content;
    }
    return text;
  }

  AddedTokens tokens_{Marks()};
};

TEST_F(ChatTemplateTest, ChatMl) {
  EXPECT_EQ(Render(kChatMl, {{"user", "Hi "}, {"assistant", "Yes?"}, {"user", "Bye"}}),
            "<|im_start|>user\nHi <|im_end|>\n<|im_start|>assistant\nYes?<|im_end|>\n"
            "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(ChatTemplateTest, ChatMlWithADefaultSystemMessage) {
  const char* templates[] = {
      // Line feeds as Jinja escapes, as in a chat_template.jinja.
      "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nBe kind.<|im_end|>\\n' }}"
      "{% endif %}{{ '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}",
      "{% set system_message = 'Be kind.' %}{{ '<|im_start|>system\n' + system_message + "
      "'<|im_end|>\n' }}",
  };
  for (const char* jinja : templates) {
    EXPECT_EQ(Render(jinja, {{"user", "Hi"}}),
              "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
              "<|im_start|>assistant\n");
    EXPECT_EQ(Render(jinja, {{"system", "Be short."}, {"user", "Hi"}}),
              "<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
              "<|im_start|>assistant\n");
  }
}

TEST_F(ChatTemplateTest, Llama3TrimsContents) {
  EXPECT_EQ(Render(kLlama3, {{"system", " Be short.\n"}, {"user", "\tHi "}}),
            "<|start_header_id|>system<|end_header_id|>\n\nBe short.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST_F(ChatTemplateTest, Llama31OpensWithItsDates) {
  const std::string jinja =
      std::string(kLlama3) + "{{- \"Cutting Knowledge Date: December 2023\\n\" }}";
  const std::string dates =
      "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
      "Today Date: 26 Jul 2024\n\n";
  const std::string rest =
      "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
      "<|start_header_id|>assistant<|end_header_id|>\n\n";
  EXPECT_EQ(Render(jinja, {{"user", "Hi"}}), dates + rest);
  EXPECT_EQ(Render(jinja, {{"system", "Be short."}, {"user", "Hi"}}), dates + "Be short." + rest);
}

TEST_F(ChatTemplateTest, OthersAreUnknown) {
  EXPECT_EQ(Render("", {}), "(unknown)");
  EXPECT_EQ(Render("{{ '[INST] ' + message['content'] + ' [/INST]' }}", {}), "(unknown)");
  EXPECT_FALSE(ChatTemplate::Recognise(kChatMl, AddedTokens({})).has_value());
}

}  // namespace
}  // namespace foretoken
