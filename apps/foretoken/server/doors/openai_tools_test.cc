#include "apps/foretoken/server/doors/door_testing.h"
#include "apps/foretoken/server/doors/doors.h"

namespace foretoken::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kUser[] = R"({"role":"user","content":"Hi"})";

std::string ToolsBody(const std::string& messages, const std::string& more) {
  return R"({"messages":[)" + messages + "]" + (more.empty() ? "" : "," + more) + "}";
}

ApiRequest ToolsChat(const std::string& more) {
  return MustRead(ChatDoor(), ToolsBody(kUser, more));
}
ApiRequest Turns(const std::string& messages, const std::string& more = "") {
  return MustRead(ChatDoor(), ToolsBody(messages, more));
}

std::vector<std::string> NamesOf(const ApiRequest& request) {
  std::vector<std::string> names;
  for (const ChatTool& tool : request.tools) names.push_back(tool.name);
  return names;
}

constexpr char kMixed[] =
    R"("tools":[{"type":"web_search","user_location":{}},)"
    R"({"type":"custom","custom":{"name":"apply_patch"}},)"
    R"({"type":"function","function":{"name":"f","parameters":{"type":"object"}}},)"
    R"({"function":{"name":"g"}}])";

TEST(OpenAiTools, ThoseOfOtherTypesAreLeftOutAndNamed) {
  const ApiRequest request = ToolsChat(kMixed);
  EXPECT_THAT(NamesOf(request), ElementsAre("f", "g"));
  EXPECT_EQ(Json::Parse(request.chat.tools).size(), 2U);
  EXPECT_THAT(request.ignored, ElementsAre("tools[0].type=web_search", "tools[1].type=custom"));
  // A template is told of no tools where there are none left.
  EXPECT_EQ(ToolsChat(R"("tools":[{"type":"web_search"}])").chat.tools, "");
  // They are known: where unknown fields are refused, these are not.
  const Result<ApiRequest> strict =
      ChatDoor().read(ToolsBody(kUser, kMixed), {.strict_fields = true});
  ASSERT_TRUE(strict.ok()) << strict.error().message;
  EXPECT_EQ(strict->ignored, request.ignored);
}

TEST(OpenAiTools, AFunctionThatNamesNoMembersTakesNone) {
  const auto parameters = [](const std::string& schema) {
    const ApiRequest request = ToolsChat(
        R"("tools":[{"type":"function","function":{"name":"f","parameters":)" + schema + "}}]");
    // The template is told what was sent.
    EXPECT_EQ(Json::Parse(request.chat.tools)[0]["function"]["parameters"], Json::Parse(schema));
    return Json::Parse(request.tools[0].parameters);
  };
  const Json none = {
      {"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  EXPECT_EQ(parameters(R"({"type":"object","properties":{}})"), none);
  EXPECT_EQ(parameters(R"({"type":"object","title":"T","properties":{},"required":[]})"), none);
  // What speaks of members otherwise is what it says; so is a schema of any object.
  for (const char* schema :
       {R"({"type":"object"})", R"({"type":"object","properties":{},"additionalProperties":true})",
        R"({"type":"object","properties":{},"additionalProperties":{"type":"string"}})",
        R"({"type":"object","properties":{},"patternProperties":{"a":{}}})",
        R"({"type":"object","properties":{},"minProperties":1})",
        R"({"type":"object","properties":{},"required":["a"]})",
        R"({"type":"object","properties":{},"anyOf":[{"required":["a"]}]})",
        R"({"type":"object","properties":{"a":{}}})", R"({"properties":{}})"}) {
    EXPECT_EQ(parameters(schema), Json::Parse(schema)) << schema;
  }
}

TEST(OpenAiTools, AChoiceThatNeedsOneOfThoseIsRefused) {
  const auto refused = [](const std::string& choice, const std::string& field,
                          const std::string& saying) {
    ExpectRefused(ChatDoor(), ToolsBody(kUser, std::string(kMixed) + R"(,"tool_choice":)" + choice),
                  field, saying);
  };
  refused(R"({"type":"web_search"})", "tool_choice.type", "'web_search' is none of the tools");
  refused(R"({"type":"custom","custom":{"name":"apply_patch"}})", "tool_choice.type", "'custom'");
  refused(R"({"type":"function","function":{"name":"apply_patch"}})", "tool_choice",
          "tools of other kinds are left out");
  ExpectRefused(ChatDoor(),
                ToolsBody(kUser, R"("tools":[{"type":"web_search"}],"tool_choice":"required")"),
                "tool_choice", "no function among those sent");
}

TEST(OpenAiTools, OfTheAllowedOnesTheTemplateIsTold) {
  const auto allowed = [](const std::string& mode, const std::string& names) {
    return std::string(kMixed) + R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{)" +
           R"("mode":")" + mode + R"(","tools":[)" + names + "]}}";
  };
  const std::string g = R"({"type":"function","function":{"name":"g"}},{"type":"web_search"})";
  const ApiRequest request = ToolsChat(allowed("auto", g));
  EXPECT_THAT(NamesOf(request), ElementsAre("g"));
  EXPECT_FALSE(request.must_call);
  EXPECT_EQ(Json::Parse(request.chat.tools)[0]["function"]["name"], "g");
  EXPECT_TRUE(ToolsChat(allowed("required", g)).must_call);
  ExpectRefused(ChatDoor(), ToolsBody(kUser, allowed("required", R"({"type":"mcp"})")),
                "tool_choice.allowed_tools.mode", "no function");
}

TEST(OpenAiTools, NamesAreAsLongAsAnyApiHasThem) {
  const auto named = [](std::size_t length) {
    return ToolsBody(kUser, R"("tools":[{"type":"function","function":{"name":")" +
                                std::string(length, 'a') + R"("}}])");
  };
  EXPECT_TRUE(ChatDoor().read(named(128), {}).ok());
  EXPECT_FALSE(ChatDoor().read(named(257), {}).ok());
}

TEST(OpenAiTools, OldFunctions) {
  const std::string functions =
      R"("functions":[{"name":"f","description":"d","parameters":{"type":"object"}},{"name":"g"}])";
  const ApiRequest request = ToolsChat(functions + R"(,"function_call":{"name":"g"})");
  EXPECT_TRUE(request.must_call && request.one_call && request.old_calls);
  EXPECT_THAT(NamesOf(request), ElementsAre("g"));
  EXPECT_EQ(Json::Parse(request.chat.tools)[0]["function"]["description"], "d");
  EXPECT_THAT(request.ignored, IsEmpty());
  EXPECT_THAT(NamesOf(ToolsChat(functions + R"(,"function_call":"none")")), IsEmpty());
  EXPECT_THAT(NamesOf(ToolsChat(functions + R"(,"function_call":"auto")")), ElementsAre("f", "g"));
  ExpectRefused(ChatDoor(), ToolsBody(kUser, functions + R"(,"function_call":{"name":"x"})"),
                "function_call", "'function_call' names 'x'");
  ExpectRefused(ChatDoor(), ToolsBody(kUser, functions + "," + kMixed), "functions", "new form");
}

// An answer that calls `f`, whole or as the deltas of its stream.
std::vector<Json> Called(ApiRequest request) {
  using Kind = ChatPart::Kind;
  const auto writer = ChatDoor().writer(request, {.id = "c", .model = "m"}, nullptr);
  std::string out;
  writer->Start({}, &out);
  writer->Add({.parts = {{Kind::kCall, "f"}, {Kind::kArguments, "{\"a\""}}}, &out);
  writer->Add(
      {.parts = {{Kind::kArguments, ":1}"}}, .ending = EndingBy(FinishReason::kEndOfSequence)},
      &out);
  writer->End(&out);
  if (!request.stream) return {Json::Parse(out)["choices"][0]};
  std::vector<Json> choices;
  out.resize(out.find("data: [DONE]"));
  for (const NamedEvent& event : Events(out)) choices.push_back(event.data["choices"][0]);
  return choices;
}

TEST(OpenAiTools, OldFunctionsAreCalledInTheOldForm) {
  ApiRequest request = ToolsChat(R"("functions":[{"name":"f"}])");
  const Json whole = Called(request)[0];
  EXPECT_EQ(whole["finish_reason"], "function_call");
  EXPECT_EQ(whole["message"]["function_call"].dump(), R"({"name":"f","arguments":"{\"a\":1}"})");
  EXPECT_TRUE(whole["message"]["content"].is_null());
  EXPECT_FALSE(whole["message"].contains("tool_calls"));
  request.stream = true;
  std::string name;
  std::string arguments;
  for (const Json& choice : Called(request)) {
    EXPECT_FALSE(choice["delta"].contains("tool_calls"));
    if (!choice["delta"].contains("function_call")) continue;
    const Json& call = choice["delta"]["function_call"];
    name += call.value("name", "");
    arguments += call.value("arguments", "");
  }
  EXPECT_EQ(name, "f");
  EXPECT_EQ(arguments, "{\"a\":1}");
  EXPECT_EQ(Called(request).back()["finish_reason"], "function_call");
}

TEST(OpenAiTools, EarlierCallsOfEveryForm) {
  const ApiRequest request = Turns(
      std::string(kUser) +
      R"(,{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\":1}"}},)"
      R"({"role":"function","name":"f","content":"x"},)"
      R"({"role":"assistant","reasoning":"Hm.","tool_calls":[{"id":"1","function":{"name":"g",)"
      R"("arguments":{"b":2}}},{"id":"2","type":"custom","custom":{"name":"h","input":"in"}}]},)"
      R"({"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"y"},)"
      R"({"type":"image_url","image_url":{"url":"data:"}}]})");
  const std::vector<ChatMessage>& turns = request.chat.messages;
  ASSERT_EQ(turns.size(), 5U);
  EXPECT_EQ(Json::Parse(turns[1].more)["tool_calls"][0]["function"].dump(),
            R"({"name":"f","arguments":{"a":1}})");
  EXPECT_EQ(turns[2].role, "tool");
  EXPECT_EQ(turns[2].more, R"({"name":"f"})");
  const auto more = Json::Parse(turns[3].more);
  EXPECT_EQ(more["reasoning_content"], "Hm.");
  EXPECT_EQ(more["tool_calls"][0]["function"].dump(), R"({"name":"g","arguments":{"b":2}})");
  EXPECT_EQ(more["tool_calls"][1]["function"].dump(), R"({"name":"h","arguments":{"input":"in"}})");
  EXPECT_EQ(turns[4].content, "y[image_url left out: only text can be read here]");
  EXPECT_THAT(request.ignored, ElementsAre("messages[4].content[1].type=image_url"));
}

TEST(OpenAiTools, AnAnswerOfAnotherServerIsReadAsItWasReturned) {
  const ApiRequest request =
      Turns(std::string(kUser) +
            R"(,{"role":"assistant","content":[{"type":"refusal","refusal":"No."}],"refusal":null,)"
            R"("annotations":[{"type":"url_citation"}],"audio":null,"function_call":null,)"
            R"("tool_calls":[]},)" +
            kUser);
  EXPECT_EQ(request.chat.messages[1].content, "No.");
  EXPECT_THAT(request.ignored, IsEmpty());
}

constexpr char kBegun[] =
    R"({"role":"user","content":"Hi"},{"role":"assistant","content":"Once upon","prefix":true})";

TEST(OpenAiTurns, TheLastOfTheAssistantsIsGoneOnWith) {
  EXPECT_TRUE(Turns(kBegun).chat.continues_last);
  EXPECT_TRUE(Turns(kBegun, R"("continue_final_message":true,"add_generation_prompt":false)")
                  .chat.continues_last);
  EXPECT_THAT(Turns(kBegun).ignored, IsEmpty());
  EXPECT_FALSE(ToolsChat("").chat.continues_last);
  // Who says so has a turn of its own begun.
  EXPECT_FALSE(Turns(kBegun, R"("add_generation_prompt":true)").chat.continues_last);
  EXPECT_FALSE(Turns(kBegun, R"("continue_final_message":false)").chat.continues_last);
  // A turn that calls is whole.
  EXPECT_FALSE(Turns(R"({"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f"}}]})")
                   .chat.continues_last);
  EXPECT_THAT(ToolsChat(R"("add_generation_prompt":false)").chat.variables,
              HasSubstr(R"("add_generation_prompt":false)"));
  ExpectRefused(ChatDoor(), ToolsBody(kUser, R"("continue_final_message":true)"),
                "continue_final_message", "to end with a turn of the assistant's");
  ExpectRefused(ChatDoor(),
                ToolsBody(kBegun, R"("continue_final_message":true,"add_generation_prompt":true)"),
                "add_generation_prompt", "give one of them");
}

TEST(OpenAiTurns, WhatTheAnswerMayTurnOutToBe) {
  EXPECT_EQ(ToolsChat(R"("prediction":{"type":"content","content":"Once"})").prediction, "Once");
  EXPECT_EQ(ToolsChat(R"("prediction":{"type":"content","content":[{"type":"text","text":"On"},)"
                      R"({"type":"text","text":"ce"}]})")
                .prediction,
            "Once");
  ExpectRefused(ChatDoor(), ToolsBody(kUser, R"("prediction":{"type":"text","content":"a"})"),
                "prediction.type", "content");
  const ApiRequest request = ToolsChat(R"("prediction":{"type":"content","content":"Once"})");
  Ending ending = EndingBy(FinishReason::kEndOfSequence);
  ending.stats.proposed = 5;
  ending.stats.accepted = 3;
  const auto usage = Json::Parse(Answer(ChatDoor(), request, ending))["usage"];
  EXPECT_EQ(usage["completion_tokens_details"].dump(),
            R"({"accepted_prediction_tokens":3,"rejected_prediction_tokens":2})");
}

TEST(OpenAiFields, WhatIsNotHonouredIsNamed) {
  EXPECT_THAT(ToolsChat(R"("user":"u","metadata":{},"service_tier":"auto","store":false,)"
                        R"("verbosity":"medium","prompt_cache_key":"k","safety_identifier":"s")")
                  .ignored,
              IsEmpty());
  EXPECT_THAT(
      ToolsChat(R"("service_tier":"flex","store":true,"verbosity":"low","web_search_options":{})")
          .ignored,
      ElementsAre("service_tier=flex", "verbosity=low", "web_search_options=a search",
                  "store=true"));
}

}  // namespace
}  // namespace foretoken::server
