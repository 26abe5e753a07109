#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foretoken/chat_format.h"
#include "grammar/automaton.h"
#include "grammar/grammar.h"
#include "grammar/state_graph.h"
#include "grammar/unique/unique_lists.h"

namespace foretoken {
namespace {

constexpr std::string_view kThinks = "<think></think>";

AnswerRules RulesFor(std::string_view form, bool strict = true) {
  AnswerRules rules{.reading = {.format = FindChatFormat("", FindCallForm(form)),
                                .in_reasoning = false,
                                .calls = true},
                    .tools = {},
                    .content_grammar = {}};
  rules.tools = {{"f",
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

// A call of f as the format writes it, arguments and all.
std::string Call(const CallForm& form, const std::string& arguments) {
  return std::string(form.before_name) + "f" + std::string(form.before_arguments) + arguments +
         std::string(form.after_arguments);
}

TEST(AnswerGrammar, NothingAskedIsNoGrammar) {
  AnswerRules rules = RulesFor("hermes", false);
  EXPECT_EQ(*AnswerGrammar(rules), "");
  rules.tools.clear();
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
    const std::string one = first + Call(form, "{\"a\":1}");
    EXPECT_TRUE(answers.Have(one + last)) << name;
    EXPECT_EQ(answers.Have(one + joint + Call(form, "{\"a\":2}") + last), form.several) << name;
    EXPECT_FALSE(answers.Have("")) << name;
    EXPECT_FALSE(answers.Have("Hi")) << name;
    EXPECT_EQ(answers.Have(one), last.empty()) << name;
    EXPECT_FALSE(answers.Have(first + Call(form, "{\"a\":\"x\"}") + last)) << name;
    rules.one_call = true;
    EXPECT_FALSE(Answers(rules).Have(one + joint + Call(form, "{\"a\":2}") + last)) << name;
  }
}

// What a grammar writes is what a reader finds.
TEST(AnswerGrammar, CallsAreRead) {
  for (const std::string_view name : CallFormNames()) {
    const CallForm& form = *FindCallForm(name);
    std::string text = std::string(form.first) + Call(form, "{\"a\":1}");
    if (form.several) text += std::string(form.joint) + Call(form, "{\"a\":2}");
    text += form.last;
    ChatReader reader(RulesFor(name).reading);
    std::vector<ChatPart> parts;
    reader.Push(text, &parts);
    reader.Finish(&parts);
    using Kind = ChatPart::Kind;
    std::vector<ChatPart> expected = {{Kind::kCall, "f"}, {Kind::kArguments, "{\"a\":1}"}};
    if (form.several) {
      expected.push_back({Kind::kCall, "f"});
      expected.push_back({Kind::kArguments, "{\"a\":2}"});
    }
    EXPECT_EQ(parts, expected) << text;
  }
}

TEST(AnswerGrammar, StrictCallsAreHeldToFromTheirMarkOn) {
  for (const std::string_view name : CallFormNames()) {
    const CallForm& form = *FindCallForm(name);
    Answers answers(RulesFor(name));
    const std::string first(form.first);
    const std::string call = first + Call(form, "{\"a\":1}") + std::string(form.last);
    for (const std::string& text : {std::string(), std::string("Hi < é {\n"), call}) {
      EXPECT_TRUE(answers.Have(text)) << name << ": " << text;
    }
    EXPECT_FALSE(answers.Have(first + Call(form, "{\"a\":null}") + std::string(form.last))) << name;
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
  const std::string call = Call(*rules.reading.format.calls, "{\"a\":1}");
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
  const std::string call = Call(*rules.reading.format.calls, "{\"a\":1}");
  Answers both(rules);
  EXPECT_TRUE(both.Have("no"));
  EXPECT_TRUE(both.Have(call));
  EXPECT_FALSE(both.Have("no" + call));
  rules.tools.clear();
  Answers said(rules);
  EXPECT_TRUE(said.Have("yes"));
  EXPECT_FALSE(said.Have(call));
}

TEST(AnswerGrammar, ASchemaThatCannotBeHeldToIsNamed) {
  AnswerRules rules = RulesFor("hermes");
  rules.tools[1].parameters = R"({"unevaluatedItems":false})";
  const auto grammar = AnswerGrammar(rules);
  ASSERT_FALSE(grammar.ok());
  EXPECT_THAT(grammar.error().message, testing::HasSubstr("function 'g'"));
  EXPECT_THAT(grammar.error().message, testing::HasSubstr("'unevaluatedItems'"));
}

}  // namespace
}  // namespace foretoken
