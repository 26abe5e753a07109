#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foretoken/chat_format.h"
#include "text/grammar/automaton/automaton.h"
#include "text/grammar/automaton/state_graph.h"
#include "text/grammar/grammar.h"
#include "text/grammar/unique/unique_lists.h"

namespace foretoken {
namespace {

constexpr std::string_view kThinks = "<think></think>";

AnswerRules RulesFor(std::string_view form, bool strict = true) {
  AnswerRules rules;
  rules.reading.format = FindChatFormat("", FindCallForm(form));
  rules.reading.tools = {
      {"f",
       R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],)"
       R"("additionalProperties":false})",
       strict},
      {"g", R"({"type":"object","additionalProperties":false})", strict}};
  return rules;
}

// The texts that an answer may be.
class Answers {
 public:
  explicit Answers(const AnswerRules& rules) {
    const auto grammar = AnswerGrammar(rules);
    EXPECT_TRUE(grammar.ok()) << grammar.error().message;
    const auto parsed = ParseGrammar(*grammar);
    EXPECT_TRUE(parsed.ok()) << parsed.error().message << "\n" << *grammar;
    auto automaton = Automaton::Compile(*parsed, 16);
    EXPECT_TRUE(automaton.ok()) << automaton.error().message << "\n" << *grammar;
    automaton_ = std::make_unique<Automaton>(std::move(automaton).value());
    graph_ = std::make_unique<StateGraph>(automaton_.get());
  }
  bool Have(std::string_view text) { return Matches(text, graph_.get()); }

 private:
  std::unique_ptr<Automaton> automaton_;
  std::unique_ptr<StateGraph> graph_;
};

// A call of f as the format writes it, with an argument a (JSON).
std::string Call(const CallForm& form, const std::string& a) {
  std::string arguments = "{\"a\":" + a + "}";
  if (form.body == CallBody::kTags) {
    arguments = fmt::format("{}a{}\n{}{}{}{}\n", form.key_open, form.key_close, form.value_open, a,
                            form.value_open.empty() ? "\n" : "", form.value_close);
  }
  if (form.body == CallBody::kGemma) arguments = "{a:" + a + "}";
  return fmt::format("{}f{}{}{}", form.before_name, form.before_arguments, arguments,
                     form.after_arguments);
}

TEST(AnswerGrammar, NothingAskedIsNoGrammar) {
  AnswerRules rules = RulesFor("hermes", false);
  EXPECT_EQ(*AnswerGrammar(rules), "");
  rules.reading.tools.clear();
  EXPECT_EQ(*AnswerGrammar(rules), "");
}

TEST(AnswerGrammar, WhatMustCallCalls) {
  for (const std::string_view name : CallFormNames()) {
    const CallForm& form = *FindCallForm(name);
    AnswerRules rules = RulesFor(name, false);
    rules.must_call = true;
    Answers answers(rules);
    const std::string first(form.first);
    const std::string last(form.last);
    const std::string joint(form.joint);
    const std::string one = first + Call(form, "1");
    EXPECT_TRUE(answers.Have(one + last)) << name;
    EXPECT_EQ(answers.Have(one + joint + Call(form, "2") + last), form.several) << name;
    EXPECT_FALSE(answers.Have("")) << name;
    EXPECT_FALSE(answers.Have("Hi")) << name;
    EXPECT_EQ(answers.Have(one), last.empty()) << name;
    EXPECT_FALSE(answers.Have(first + Call(form, "\"x\"") + last)) << name;
    rules.one_call = true;
    EXPECT_FALSE(Answers(rules).Have(one + joint + Call(form, "2") + last)) << name;
  }
}

// What a grammar writes is what a reader finds.
TEST(AnswerGrammar, CallsAreRead) {
  for (const std::string_view name : CallFormNames()) {
    const CallForm& form = *FindCallForm(name);
    std::string text = std::string(form.first) + Call(form, "1");
    if (form.several) text += std::string(form.joint) + Call(form, "2");
    text += form.last;
    ChatReader reader(RulesFor(name).reading);
    std::vector<ChatPart> parts;
    reader.Push(text, &parts);
    reader.Finish(&parts);
    using Kind = ChatPart::Kind;
    const bool tags = form.body == CallBody::kTags;
    const auto arguments = [tags](int a) {
      return ChatPart{Kind::kArguments, fmt::format("{{\"a\":{}{}}}", tags ? " " : "", a)};
    };
    std::vector<ChatPart> expected = {{Kind::kCall, "f"}, arguments(1)};
    if (form.several) expected.insert(expected.end(), {{Kind::kCall, "f"}, arguments(2)});
    EXPECT_EQ(parts, expected) << text;
  }
}

TEST(AnswerGrammar, StrictCallsAreHeldToFromTheirMarkOn) {
  for (const std::string_view name : CallFormNames()) {
    const CallForm& form = *FindCallForm(name);
    Answers answers(RulesFor(name));
    const std::string first(form.first);
    const std::string call = first + Call(form, "1") + std::string(form.last);
    for (const std::string& text : {std::string(), std::string("Hi < é {\n"), call}) {
      EXPECT_TRUE(answers.Have(text)) << name << ": " << text;
    }
    EXPECT_FALSE(answers.Have(first + Call(form, "null") + std::string(form.last))) << name;
    EXPECT_FALSE(answers.Have(call + "and more")) << name;
    if (form.opens_by_brace) continue;
    EXPECT_TRUE(answers.Have("Hi <" + call)) << name;
    EXPECT_FALSE(answers.Have("Hi " + std::string(form.open))) << name;
  }
}

TEST(AnswerGrammar, ThoughtsComeBefore) {
  AnswerRules rules = RulesFor("hermes");
  rules.must_call = true;
  rules.reading.format = FindChatFormat(kThinks, FindCallForm("hermes"));
  const std::string call = Call(*rules.reading.format.calls, "1");
  Answers open(rules);
  EXPECT_TRUE(open.Have(call));
  EXPECT_TRUE(open.Have("<think>\nSo </thin <tool_call>\n</think>\n\n" + call));
  EXPECT_FALSE(open.Have("<think>So " + call));
  rules.reading.in_reasoning = true;
  Answers begun(rules);
  EXPECT_TRUE(begun.Have("So</think>" + call));
  EXPECT_FALSE(begun.Have(call));
}

TEST(AnswerGrammar, WhatIsSaidMayHaveAGrammarBesideCalls) {
  AnswerRules rules = RulesFor("hermes");
  rules.content_grammar = "root ::= \"yes\" | no\nno ::= \"no\"";
  const std::string call = Call(*rules.reading.format.calls, "1");
  Answers both(rules);
  EXPECT_TRUE(both.Have("no"));
  EXPECT_TRUE(both.Have(call));
  EXPECT_FALSE(both.Have("no" + call));
  rules.reading.tools.clear();
  Answers said(rules);
  EXPECT_TRUE(said.Have("yes"));
  EXPECT_FALSE(said.Have(call));
}

TEST(AnswerGrammar, StringsInTagsHaveNoQuotes) {
  AnswerRules rules = RulesFor("qwen-tags");
  rules.must_call = true;
  rules.reading.tools = {
      {"f", R"({"type":"object","properties":{"b":{"type":"string"},"c":{"type":"string",)"
            R"("enum":["x","y"]},"d":{"type":["integer","null"]}},"required":["b"]})"}};
  Answers answers(rules);
  const auto call = [](const std::string& arguments) {
    return "<tool_call>\n<function=f>\n" + arguments + "</function>\n</tool_call>";
  };
  const std::string b = "<parameter=b>\nsay \"a\n<b>\n</parameter>\n";
  const std::string c = "<parameter=c>\ny\n</parameter>\n";
  EXPECT_TRUE(answers.Have(call(b)));
  EXPECT_TRUE(answers.Have(call(b + c)));
  EXPECT_TRUE(answers.Have(call(b + c + "<parameter=d>\nnull\n</parameter>\n")));
  EXPECT_FALSE(answers.Have(call(c)));
  EXPECT_FALSE(answers.Have(call(b + "<parameter=c>\nz\n</parameter>\n")));
  EXPECT_FALSE(answers.Have(call(b + "<parameter=d>\nx\n</parameter>\n")));
  rules.reading.tools[0].parameters =
      R"({"type":"object","properties":{"b":{"type":"string","pattern":"a"}}})";
  const auto refused = AnswerGrammar(rules);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("'pattern' is not supported"));
}

TEST(AnswerGrammar, GemmasArgumentsAreHeldToTheirSchema) {
  AnswerRules rules = RulesFor("gemma");
  rules.must_call = true;
  rules.reading.tools = {
      {"f", R"({"type":"object","properties":{"s":{"type":"string"},"e":{"enum":["x",2]},)"
            R"("l":{"type":"array","items":{"type":["integer","null"]},"minItems":1,"maxItems":2},)"
            R"("o":{"anyOf":[{"type":"object","properties":{"b":{"type":"boolean"}}},)"
            R"({"type":"null"}]}},"required":["s","l"]})"}};
  Answers answers(rules);
  const auto have = [&](std::string_view arguments) {
    return answers.Have(fmt::format("<|tool_call>call:f{}<tool_call|>", arguments));
  };
  EXPECT_TRUE(have(R"({s:<|"|>a "b" <x> {,}<|"|>,l:[1]})"));
  EXPECT_TRUE(have(R"({s:<|"|><|"|>,e:<|"|>x<|"|>,l:[1,null],o:{b:true}})"));
  EXPECT_TRUE(have(R"({s:<|"|><|"|>,e:2,l:[1],o:{}})"));
  EXPECT_TRUE(have(R"({s:<|"|><|"|>,l:[1],o:null})"));
  EXPECT_FALSE(have(R"({l:[1]})"));
  EXPECT_FALSE(have(R"({s:<|"|><|"|>,l:[]})"));
  EXPECT_FALSE(have(R"({s:<|"|><|"|>,l:[1,2,3]})"));
  EXPECT_FALSE(have(R"({s:<|"|><|"|>,e:3,l:[1]})"));
  EXPECT_FALSE(have(R"({s:"a",l:[1]})"));
  EXPECT_FALSE(have(R"({s:<|"|><|"|>,,l:[1]})"));
  for (const char* schema :
       {R"({"type":"object","properties":{"a":{"type":"string","pattern":"b"}}})",
        R"({"type":"object","properties":{"a:b":{"type":"string"}}})",
        R"({"type":"object","properties":{"a":{}}})",
        R"({"type":"object","properties":{"a":{"$ref":"#"}}})"}) {
    rules.reading.tools[0].parameters = schema;
    EXPECT_FALSE(AnswerGrammar(rules).ok()) << schema;
  }
}

TEST(AnswerGrammar, WhatGptOssSaysHasAHeader) {
  AnswerRules rules = RulesFor("gpt-oss");
  rules.reading.tools.clear();
  rules.content_grammar = "root ::= \"yes\"";
  Answers answers(rules);
  EXPECT_TRUE(answers.Have("<|channel|>final<|message|>yes"));
  EXPECT_TRUE(answers.Have(
      "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>yes"));
  EXPECT_FALSE(answers.Have("yes"));
}

TEST(AnswerGrammar, ASchemaThatCannotBeHeldToIsNamed) {
  AnswerRules rules = RulesFor("hermes");
  rules.reading.tools[1].parameters = R"({"unevaluatedItems":false})";
  const auto grammar = AnswerGrammar(rules);
  ASSERT_FALSE(grammar.ok());
  EXPECT_THAT(grammar.error().message, testing::HasSubstr("function 'g'"));
  EXPECT_THAT(grammar.error().message, testing::HasSubstr("'unevaluatedItems'"));
}

}  // namespace
}  // namespace foretoken
