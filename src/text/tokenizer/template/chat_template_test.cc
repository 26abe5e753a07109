#include "text/tokenizer/template/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace foretoken {
namespace {

using ::testing::HasSubstr;

const std::map<std::string, std::string> kMarks = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};

std::string Render(std::string_view jinja, const ChatInput& chat) {
  const auto parsed = ChatTemplate::Parse(jinja, kMarks);
  if (!parsed.ok()) return "(" + parsed.error().message + ")";
  const auto text = parsed->Render(chat);
  return text.ok() ? text->bytes() : "(" + text.error().message + ")";
}

std::string RenderBuiltIn(std::string_view name, const ChatInput& chat) {
  return Render(BuiltInChatTemplate(name).value(), chat);
}

const ChatInput kTalk = {
    {{"system", "Be kind."}, {"user", " Hi "}, {"assistant", "Yes?"}, {"user", "Bye"}}};

TEST(BuiltInChatTemplates, WriteTheirFamiliesForms) {
  const std::map<std::string_view, std::string> expected = {
      {"chatml",
       "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n"
       "<|im_start|>assistant\nYes?<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
       "<|im_start|>assistant\n"},
      {"gemma",
       "<s><start_of_turn>user\nBe kind.\n\nHi<end_of_turn>\n<start_of_turn>model\n"
       "Yes?<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n"},
      {"hermes",
       "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n"
       "<|im_start|>assistant\nYes?<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
       "<|im_start|>assistant\n"},
      {"llama2",
       "<s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\n Hi  [/INST] Yes? </s><s>[INST] Bye [/INST]"},
      {"llama3",
       "<s><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>"
       "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\nYes?<|eot_id|>"
       "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\n"},
      {"mistral", "<s>[INST] Be kind.\n\n Hi  [/INST] Yes?</s>[INST] Bye [/INST]"},
      {"phi3",
       "<|system|>\nBe kind.<|end|>\n<|user|>\n Hi <|end|>\n<|assistant|>\nYes?<|end|>\n"
       "<|user|>\nBye<|end|>\n<|assistant|>\n"},
      {"vicuna", "<s>Be kind.\n\nUSER:  Hi \nASSISTANT: Yes?</s>\nUSER: Bye\nASSISTANT:"},
      {"zephyr",
       "<|system|>\nBe kind.</s>\n<|user|>\n Hi </s>\n<|assistant|>\nYes?</s>\n<|user|>\nBye</s>\n"
       "<|assistant|>\n"}};
  ASSERT_EQ(BuiltInChatTemplates().size(), expected.size());
  for (const std::string_view name : BuiltInChatTemplates()) {
    EXPECT_EQ(RenderBuiltIn(name, kTalk), expected.at(name)) << name;
  }
  EXPECT_FALSE(BuiltInChatTemplate("chatmil").has_value());
}

TEST(ChatTemplate, TellsTheTemplateEverything) {
  ChatInput chat{.messages = {{"user", "Hi", R"({"name": "Ada", "parts": [1, {"z": 1, "a": 2}]})"}},
                 .tools = R"([{"b": 1, "a": {}}])",
                 .documents = R"([{"title": "T"}])",
                 .variables = R"({"think": false})"};
  EXPECT_EQ(Render("{{ messages|tojson }} {{ tools|tojson }} {{ documents[0].title }} {{ think }} "
                   "{{ add_generation_prompt }} {{ eos_token }}",
                   chat),
            R"([{"role": "user", "content": "Hi", "name": "Ada", "parts": [1, {"z": 1, "a": 2}]}] )"
            R"([{"b": 1, "a": {}}] T False True </s>)");
  EXPECT_EQ(Render("{{ tools is none }}{{ documents is none }}{{ strftime_now is defined }}", {}),
            "TrueTrueFalse");
  chat.variables = R"({"add_generation_prompt": false, "eos_token": "."})";
  EXPECT_EQ(Render("{{ add_generation_prompt }}{{ eos_token }}", chat), "False.");
  chat.now.emplace();
  chat.now->tm_year = 100;
  EXPECT_EQ(Render("{{ strftime_now('%Y') }}", chat), "2000");
}

// As Phi-4 mini's.
constexpr std::string_view kToolsOfSystemText =
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] }}"
    "{% if m['role'] == 'system' and 'tools' in m and m['tools'] is not none %}"
    "{{ '<|tool|>' + m['tools'] + '<|/tool|>' }}{% endif %}<|end|>{% endfor %}<|assistant|>";

TEST(ChatTemplate, ToolsStandInTheSystemMessageWhereTheTemplateLooksThere) {
  ChatInput chat{.messages = {{"system", "Be kind."}, {"user", "Hi"}},
                 .tools =
                     R"([{"type":"function","function":{"name":"now","description":"é <|end|>",)"
                     R"("parameters":{}}}, {"name":"flat"}])"};
  const std::string tools =
      R"(<|tool|>[{"name": "now", "description": "é <|end|>", "parameters": {}}, )"
      R"({"name": "flat"}]<|/tool|>)";
  const std::string turns = "<|end|><|user|>Hi<|end|><|assistant|>";
  EXPECT_EQ(Render(kToolsOfSystemText, chat), "<|system|>Be kind." + tools + turns);
  // What tools say is input: a mark in it is none.
  const auto text = ChatTemplate::Parse(kToolsOfSystemText, kMarks)->Render(chat);
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(text->IsInput(text->bytes().find("<|end|>\"")));
  EXPECT_FALSE(text->IsInput(text->bytes().find("<|tool|>")));

  chat.messages.front().more = R"({"tools": "[mine]"})";  // What a message says of its own stays.
  EXPECT_EQ(Render(kToolsOfSystemText, chat), "<|system|>Be kind.<|tool|>[mine]<|/tool|>" + turns);
  chat.messages.erase(chat.messages.begin());
  EXPECT_EQ(Render(kToolsOfSystemText, chat), "<|system|>" + tools + turns);
  chat.tools.clear();
  EXPECT_EQ(Render(kToolsOfSystemText, chat), "<|user|>Hi<|end|><|assistant|>");

  // A list of them, as GLM 4 reads it.
  chat.tools = R"([{"function":{"name":"now"}}])";
  EXPECT_EQ(Render("{% for m in messages %}{% for tool in m['tools'] %}{{ tool.function.name }}"
                   "{% endfor %}{{ m.role }} {% endfor %}",
                   chat),
            "nowsystem user ");
  // A template that knows the variable reads it there, whatever else it would read.
  EXPECT_EQ(Render("{% for m in messages %}{{ m.role }}{{ m.tools|tojson if m.tools }}{% endfor %}"
                   "{{ tools|tojson }}",
                   chat),
            R"(user[{"function": {"name": "now"}}])");
}

TEST(ChatTemplate, AnAnswerGoesOnWithTheLastTurn) {
  const ChatInput chat{.messages = {{"user", "Hi"}, {"assistant", " Once upon "}},
                       .continues_last = true};
  EXPECT_EQ(RenderBuiltIn("chatml", chat),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n Once upon ");
  // This one takes the spaces around a turn away; the end of what goes on is not its end.
  EXPECT_EQ(RenderBuiltIn("llama3", chat),
            "<s><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nOnce upon ");
  for (const std::string_view name : BuiltInChatTemplates()) {
    EXPECT_TRUE(RenderBuiltIn(name, chat).ends_with("Once upon ")) << name;
  }
  // What the turn says stays input, and what it must be told by is not in the text.
  const auto text = ChatTemplate::Parse(*BuiltInChatTemplate("chatml"), kMarks)->Render(chat);
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(text->IsInput(text->size() - 1));
  EXPECT_THAT(Render("{{ messages[0].content }}", chat), HasSubstr("cannot go on with it"));
}

TEST(ChatTemplate, RefusesInputsThatAreNone) {
  EXPECT_THAT(Render("", {.tools = "{}"}), HasSubstr("the tools of a chat must be a JSON array"));
  EXPECT_THAT(Render("", {.variables = "[1"}), HasSubstr("must be a JSON object, not '[1'"));
  EXPECT_THAT(Render("", {.messages = {{"user", "", "7"}}}), HasSubstr("must be a JSON object"));
  EXPECT_THAT(Render("", {.variables = R"({"messages": []})"}), HasSubstr("'messages'"));
  EXPECT_THAT(Render("{{ raise_exception('Only users.') }}", {}), HasSubstr("Only users."));
  EXPECT_THAT(Render("{% if %}", {}), HasSubstr("line 1"));
}

}  // namespace
}  // namespace foretoken
