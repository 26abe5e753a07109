#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <random>

#include "foretoken/chat_format.h"

namespace foretoken {

void PrintTo(const ChatPart& part, std::ostream* out) {
  constexpr const char* kNames[] = {"content", "reasoning", "call", "arguments"};
  *out << kNames[static_cast<int>(part.kind)] << ": " << part.text;
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = ChatPart::Kind;
using Parts = std::vector<ChatPart>;

constexpr std::string_view kThinks = "<think></think>";

ChatReading ReadingFor(std::string_view form, bool in_reasoning = false) {
  ChatReading reading{.format = FindChatFormat(kThinks, FindCallForm(form)),
                      .in_reasoning = in_reasoning};
  if (!form.empty()) {
    reading.tools = {{"f", R"({"properties":{"s":{"type":"string"},"n":{"type":"integer"}}})"},
                     {"g", ""}};
  }
  return reading;
}

// Joins what pieces have divided.
Parts Joined(const Parts& parts) {
  Parts joined;
  for (const ChatPart& part : parts) {
    const bool more =
        !joined.empty() && part.kind != Kind::kCall && joined.back().kind == part.kind;
    if (more) {
      joined.back().text += part.text;
    } else {
      joined.push_back(part);
    }
  }
  return joined;
}

// Reads `text` in pieces of `size` bytes.
Parts Read(const ChatReading& reading, std::string_view text, std::size_t size = 1 << 20) {
  ChatReader reader(reading);
  Parts parts;
  for (; !text.empty(); text.remove_prefix(std::min(size, text.size()))) {
    reader.Push(text.substr(0, size), &parts);
  }
  reader.Finish(&parts);
  return Joined(parts);
}

ChatPart Content(std::string text) { return {Kind::kContent, std::move(text)}; }
ChatPart Reasoning(std::string text) { return {Kind::kReasoning, std::move(text)}; }
ChatPart Call(std::string name) { return {Kind::kCall, std::move(name)}; }
ChatPart Arguments(std::string text) { return {Kind::kArguments, std::move(text)}; }

TEST(ChatReader, WithoutMarksEverythingIsSaid) {
  ChatReading reading = ReadingFor("hermes");
  reading.format.reasoning = {};
  reading.tools.clear();
  EXPECT_THAT(Read(reading, " a <tool_call>\n<think>b "),
              ElementsAre(Content(" a <tool_call>\n<think>b ")));
  EXPECT_THAT(Read(reading, ""), IsEmpty());
}

TEST(ChatReader, ThoughtsComeBeforeWhatIsSaid) {
  const ChatReading reading = ReadingFor("");
  EXPECT_THAT(Read(reading, "<think>\n So. \n</think>\n\nYes.\n"),
              ElementsAre(Reasoning("So."), Content("Yes.\n")));
  EXPECT_THAT(Read(reading, "\n<think></think>Yes"), ElementsAre(Content("Yes")));
  EXPECT_THAT(Read(ReadingFor("", true), "So.\n</think> Yes"),
              ElementsAre(Reasoning("So."), Content("Yes")));
  EXPECT_THAT(Read(ReadingFor("", true), "cut o"), ElementsAre(Reasoning("cut o")));
  // Later it is spoken of.
  EXPECT_THAT(Read(reading, "The tag <think> opens"),
              ElementsAre(Content("The tag <think> opens")));
  EXPECT_THAT(Read(reading, "a </think> b <thin"), ElementsAre(Content("a </think> b <thin")));
}

TEST(ChatReader, CallsOfHermes) {
  const ChatReading reading = ReadingFor("hermes");
  EXPECT_THAT(
      Read(reading,
           "<think>x</think>Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": "
           "{\"a\": [1, \"}</tool_call>\"]}}\n</tool_call>\n<tool_call>{\"arguments\":{},"
           "\"name\":\"g\"}</tool_call>"),
      ElementsAre(Reasoning("x"), Content("Let me see."), Call("f"),
                  Arguments("{\"a\": [1, \"}</tool_call>\"]}"), Call("g"), Arguments("{}")));
  EXPECT_THAT(Read(reading, "<tool_call>{\"name\":\"f\"}</tool_call>done"),
              ElementsAre(Call("f"), Arguments("{}"), Content("done")));
  EXPECT_THAT(Read(reading, R"(<tool_call>{"name":"f","arguments":"{\"a\":1}"}</tool_call>)"),
              ElementsAre(Call("f"), Arguments(R"({"a":1})")));
}

TEST(ChatReader, WhatIsNoCallIsSaid) {
  const ChatReading reading = ReadingFor("hermes");
  for (const std::string text :
       {"<tool_call>no json</tool_call> b", "a <tool_call>", "<tool_call>{\"x\":1}</tool_call>",
        "<tool_call></tool_call>", "<tool_call>{\"name\":1}</tool_call>", "a < b <tool_cal"}) {
    EXPECT_THAT(Read(reading, text), ElementsAre(Content(text)));
  }
}

TEST(ChatReader, WhatIsCutOffOrBrokenLosesNothingBeforeIt) {
  const ChatReading reading = ReadingFor("hermes");
  EXPECT_THAT(Read(reading, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":"),
              ElementsAre(Call("f"), Arguments("{\"a\":")));
  // A bracket is missing.
  EXPECT_THAT(Read(reading, "<tool_call>{\"name\":\"f\",\"arguments\":{}</tool_call>b"),
              ElementsAre(Call("f"), Arguments("{}"), Content("b")));
}

TEST(ChatReader, CallsOfLlama) {
  const ChatReading reading = ReadingFor("llama3");
  EXPECT_THAT(Read(reading, R"({"name": "f", "parameters": {"a": 1}})"),
              ElementsAre(Call("f"), Arguments(R"({"a": 1})")));
  EXPECT_THAT(Read(reading, R"(<|python_tag|>{"type": "function", "name": "f", "parameters": {}}; )"
                            R"({"name": "g", "parameters": {}})"),
              ElementsAre(Call("f"), Arguments("{}"), Call("g"), Arguments("{}")));
  EXPECT_THAT(Read(reading, R"({"city": {"name": "f"}})"),
              ElementsAre(Content(R"({"city": {"name": "f"}})")));
  EXPECT_THAT(Read(reading, R"(See {"name": "f", "parameters": {}})"),
              ElementsAre(Content(R"(See {"name": "f", "parameters": {}})")));
}

TEST(ChatReader, CallsOfMistral) {
  for (const std::string_view form : {"mistral", "mistral-list"}) {
    EXPECT_THAT(Read(ReadingFor(form), R"(Hm. [TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}, )"
                                       R"({"name": "g", "arguments": {}, "id": "9"}])"),
                ElementsAre(Content("Hm."), Call("f"), Arguments(R"({"a": 1})"), Call("g"),
                            Arguments("{}")));
  }
  EXPECT_THAT(
      Read(ReadingFor("mistral"), R"([TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[CALL_ID]1[ARGS]{})"),
      ElementsAre(Call("f"), Arguments(R"({"a": 1})"), Call("g"), Arguments("{}")));
}

TEST(ChatReader, CallsOfDeepSeek) {
  EXPECT_THAT(Read(ReadingFor("deepseek", true),
                   "Hm</think>OK<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\":1}"
                   "<｜tool▁call▁end｜><｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
                   "<｜tool▁calls▁end｜>"),
              ElementsAre(Reasoning("Hm"), Content("OK"), Call("f"), Arguments("{\"a\":1}"),
                          Call("g"), Arguments("{}")));
  EXPECT_THAT(
      Read(ReadingFor("deepseek-r1", true),
           "</think>\n\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n"
           "```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁calls▁end｜>"),
      ElementsAre(Call("f"), Arguments("{\"a\": 1}")));
}

TEST(ChatReader, CallsInLists) {
  const Parts two{Call("f"), Arguments("{\"a\": 1}"), Call("g"), Arguments("{}")};
  EXPECT_EQ(Read(ReadingFor("granite"),
                 "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\"}]"),
            two);
  EXPECT_EQ(Read(ReadingFor("phi"),
                 "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\"}]"
                 "<|/tool_call|>"),
            two);
  EXPECT_EQ(Read(ReadingFor("command"),
                 "<|START_ACTION|>[\n {\"tool_call_id\": \"0\", \"tool_name\": \"f\", "
                 "\"parameters\": {\"a\": 1}},\n {\"tool_call_id\": \"1\", \"tool_name\": \"g\"}\n"
                 "]<|END_ACTION|>"),
            two);
}

TEST(ChatReader, CallsInTags) {
  EXPECT_THAT(
      Read(ReadingFor("qwen-tags"),
           "OK\n<tool_call>\n<function=f>\n<parameter=s>\n12\n</parameter>\n<parameter=n>\n3\n"
           "</parameter>\n<parameter=x>\ntwo\n\"lines\"\n</parameter>\n</function>\n</tool_call>\n"
           "<tool_call><function=g></function></tool_call>"),
      ElementsAre(Content("OK"), Call("f"),
                  Arguments(R"({"s": "12", "n": 3, "x": "two\n\"lines\""})"), Call("g"),
                  Arguments("{}")));
  EXPECT_THAT(Read(ReadingFor("glm"),
                   "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>a b</arg_value>\n<arg_key>n"
                   "</arg_key><arg_value>3</arg_value></tool_call>"),
              ElementsAre(Call("f"), Arguments(R"({"s": "a b", "n": 3})")));
  EXPECT_THAT(Read(ReadingFor("qwen-tags"), "<tool_call><fun>"),
              ElementsAre(Content("<tool_call><fun>")));
}

TEST(ChatReader, CallsOfGemma) {
  ChatReading reading = ReadingFor("gemma");
  EXPECT_THAT(
      Read(reading,
           "OK<|tool_call>call:f{s:<|\"|>a \"b\"\n{<|\"|>,n:3,l:[true,<|\"|>x<|\"|>],o:{k:null}}"
           "<tool_call|><|tool_call>call:g{}<tool_call|>"),
      ElementsAre(Content("OK"), Call("f"),
                  Arguments(R"({"s":"a \"b\"\n{","n":3,"l":[true,"x"],"o":{"k":null}})"), Call("g"),
                  Arguments("{}")));
  EXPECT_THAT(Read(reading, "<|tool_call>cal{}"), ElementsAre(Content("<|tool_call>cal{}")));
  reading.format = FindChatFormat("'<|tool_call>call:' + name ... '<channel|>'");
  EXPECT_THAT(Read(reading, "<|channel>thought\nHm.<channel|>Yes"),
              ElementsAre(Reasoning("Hm."), Content("Yes")));
}

TEST(ChatReader, MessagesOfGptOss) {
  const ChatReading reading = ReadingFor("gpt-oss");
  EXPECT_THAT(Read(reading,
                   "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary"
                   " to=functions.f <|constrain|>json<|message|>{\"s\":\"a\"}"),
              ElementsAre(Reasoning("Hm."), Call("f"), Arguments("{\"s\":\"a\"}")));
  EXPECT_THAT(Read(reading,
                   "<|channel|>commentary<|message|>Let me see.<|end|><|start|>assistant "
                   "to=functions.g<|channel|>commentary json<|message|>{}"),
              ElementsAre(Content("Let me see."), Call("g"), Arguments("{}")));
  EXPECT_THAT(Read(reading, "<|channel|>final<|message|>2 < 3 <|"),
              ElementsAre(Content("2 < 3 <|")));
  EXPECT_THAT(Read(reading, "No header."), ElementsAre(Content("No header.")));
  ChatReading raw = reading;
  raw.format.reasoning = {};
  EXPECT_THAT(Read(raw, "<|channel|>analysis<|message|>Hm."), ElementsAre(Content("Hm.")));
}

// Texts put together of what matters to readers.
std::string RandomText(std::mt19937* random) {
  static const std::vector<std::string> kPieces = {"<think>",
                                                   "</think>",
                                                   "<tool_call>",
                                                   "</tool_call>",
                                                   "{\"name\": \"f\", \"arguments\": {",
                                                   "}}",
                                                   "\"a\": \"\\\"}\"",
                                                   "[TOOL_CALLS]",
                                                   "[ARGS]",
                                                   "f",
                                                   "{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   ",",
                                                   "\"name\"",
                                                   ":",
                                                   "\"g\"",
                                                   "\"arguments\"",
                                                   "\n",
                                                   " ",
                                                   "é",
                                                   "<",
                                                   "<tool_",
                                                   "<｜tool▁call▁begin｜>",
                                                   "<｜tool▁call▁end｜>",
                                                   "<｜tool▁sep｜>",
                                                   "<|python_tag|>",
                                                   "<|tool_call|>",
                                                   "null",
                                                   ";",
                                                   "{}",
                                                   "<function=f>",
                                                   "<parameter=a>",
                                                   "</parameter>",
                                                   "</function>",
                                                   "<arg_key>",
                                                   "</arg_key>",
                                                   "<arg_value>",
                                                   "</arg_value>",
                                                   "<|channel|>",
                                                   "<|message|>",
                                                   "<|end|>",
                                                   "<|start|>",
                                                   " to=functions.f",
                                                   "analysis",
                                                   "final",
                                                   "<|tool_call>",
                                                   "call:f",
                                                   "<|\"|>",
                                                   "<tool_call|>"};
  std::string text;
  for (int i = (*random)() % 16; i >= 0; --i) {
    text += kPieces[(*random)() % kPieces.size()];
  }
  return text;
}

TEST(ChatReader, PiecesMakeNoDifference) {
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    for (const std::string_view form : CallFormNames()) {
      const std::string text = RandomText(&random);
      const ChatReading reading = ReadingFor(form, random() % 2 == 0);
      const Parts whole = Read(reading, text);
      EXPECT_EQ(Read(reading, text, 1), whole) << form << ": " << text;
      EXPECT_EQ(Read(reading, text, 1 + random() % 7), whole) << form << ": " << text;
    }
  }
}

TEST(ChatFormat, IsToldByTheTemplate) {
  const auto calls_of = [](std::string_view jinja) -> std::string_view {
    const CallForm* form = FindChatFormat(jinja).calls;
    return form == nullptr ? "" : form->name;
  };
  EXPECT_EQ(calls_of("<tool_call>\n{{ tool_call | tojson }}\n</tool_call>"), "hermes");
  EXPECT_EQ(calls_of("'[TOOL_CALLS]' + name + '[ARGS]'"), "mistral");
  EXPECT_EQ(calls_of("'[TOOL_CALLS] ['"), "mistral-list");
  EXPECT_EQ(calls_of("<|start_header_id|> {{ tools }}"), "llama3");
  EXPECT_EQ(calls_of("<tool_call>\n<function=' + name + '>\n<parameter="), "qwen-tags");
  EXPECT_EQ(calls_of("'<tool_call>' + name '<arg_key>'"), "glm");
  EXPECT_EQ(calls_of("<|start|>assistant<|channel|>final<|message|>"), "gpt-oss");
  EXPECT_EQ(calls_of("<|start_header_id|>"), "");
  EXPECT_EQ(FindChatFormat("x </think> y").reasoning.open, "<think>");
  EXPECT_EQ(FindChatFormat("plain").reasoning.open, "");
  EXPECT_TRUE(FindChatFormat("</think>").OpensReasoning("assistant\n<think>\n"));
  EXPECT_FALSE(FindChatFormat("</think>").OpensReasoning("<think>\n\n</think>\n\n"));
}

TEST(ChatFormat, MarksAreTokensOfItsTexts) {
  const ChatFormat mistral = FindChatFormat("", FindCallForm("mistral"));
  EXPECT_TRUE(mistral.IsMark("[TOOL_CALLS]"));
  EXPECT_TRUE(mistral.IsMark("[ARGS]"));
  EXPECT_FALSE(mistral.IsMark("[INST]"));
  EXPECT_FALSE(mistral.IsMark(""));
  EXPECT_FALSE(ChatFormat{}.IsMark("<think>"));
}

}  // namespace
}  // namespace foretoken
