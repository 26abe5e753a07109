#include "apps/foretoken/server/doors/doors.h"

#include "apps/foretoken/server/doors/door_testing.h"

namespace foretoken::server {
namespace {

using ::testing::ElementsAre;

std::string AnthropicBody(const std::string& more) {
  return R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}])" + more + "}";
}

TEST(AnthropicDoor, ReadsWhatItsClientsSend) {
  const ApiRequest request = MustRead(
      AnthropicDoor(),
      R"({"max_tokens":9,"system":[{"type":"text","text":"Be ","cache_control":null},)"
      R"({"type":"text","text":"brief."}],"messages":[{"role":"user","content":"Hi"},)"
      R"({"role":"assistant","content":[{"type":"text","text":"Ho","citations":null}]},)"
      R"({"role":"user","content":[{"type":"text","text":"Hm"}]}],"stop_sequences":["x","y"],)"
      R"("stream":true,"top_k":5,"seed":3,"speculative":{"mode":"ar"},"unheard":1,)"
      R"("thinking":{"type":"disabled"},"tools":[],"metadata":{"user_id":"u"}})");
  ASSERT_EQ(request.chat.messages.size(), 4U);
  EXPECT_EQ(request.chat.messages[0].role, "system");
  EXPECT_EQ(request.chat.messages[0].content, "Be brief.");
  EXPECT_EQ(request.chat.messages[2].content, "Ho");
  EXPECT_EQ(request.stop.max_tokens, 9);
  EXPECT_THAT(request.stop.stop_strings, ElementsAre("x", "y"));
  EXPECT_TRUE(request.stream);
  EXPECT_EQ(request.sampling.top_k, 5);
  EXPECT_EQ(request.sampling.seed, 3U);
  EXPECT_EQ(request.speculation->mode, Mode::kAr);
  EXPECT_THAT(request.ignored, ElementsAre("unheard"));
  EXPECT_EQ(request.budget.tokens, 0);
}

TEST(AnthropicDoor, ThoughtsHaveABudget) {
  const ApiRequest request = MustRead(
      AnthropicDoor(), AnthropicBody(R"(,"thinking":{"type":"enabled","budget_tokens":1024})"));
  EXPECT_EQ(request.budget.tokens, 1024);
  EXPECT_THAT(request.chat.variables, testing::HasSubstr("\"enable_thinking\":true"));
  EXPECT_EQ(MustRead(AnthropicDoor(), AnthropicBody("")).budget.tokens, -1);
}

TEST(AnthropicDoor, RefusesWhatItCannotHonour) {
  const auto refused = [](const std::string& more, const std::string& field,
                          const std::string& saying) {
    ExpectRefused(AnthropicDoor(), AnthropicBody(more), field, saying);
  };
  ExpectRefused(AnthropicDoor(), R"({"messages":[{"role":"user","content":"Hi"}]})", "max_tokens",
                "from 1");
  ExpectRefused(AnthropicDoor(), R"({"max_tokens":1})", "messages", "at least one");
  ExpectRefused(AnthropicDoor(),
                R"({"max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use",)"
                R"("id":"1","name":"f","input":{}}]}]})",
                "messages", "must not end with calls");
  refused(R"(,"tools":[{"name":"f"}])", "tools[0].input_schema", "a JSON Schema");
  refused(R"(,"tools":[{"type":"web_search_20250305","name":"w"}],"tool_choice":{"type":"tool",)"
          R"("name":"w"})",
          "tool_choice", "tools of other kinds are left out");
  refused(R"(,"tool_choice":{"type":"any"})", "tool_choice.type", "needs 'tools'");
  refused(R"(,"thinking":{"type":"enabled"})", "thinking.budget_tokens", "how many tokens");
  refused(R"(,"thinking":{"type":"much"})", "thinking.type", "disabled");
  refused(R"(,"system":[{"type":"image"}])", "system", "text only");
  refused(R"(,"output_config":{"format":{"type":"json_schema","schema":{"not":{}}}})",
          "output_config.format.schema", "no value matches");
  refused(R"(,"grammar":"root ::= \"a\"","output_config":{"format":{"type":"json_schema",)"
          R"("schema":{"type":"object"}}})",
          "output_config.format.schema", "contradicts");
}

TEST(AnthropicDoor, ASchemaKeepsTheOrderOfItsProperties) {
  const std::string schema = R"({"type":"object","properties":{"b":{"type":"null"},)"
                             R"("a":{"type":"null"}},"required":["a","b"],)"
                             R"("additionalProperties":false})";
  const ApiRequest request = MustRead(
      AnthropicDoor(),
      AnthropicBody(R"(,"output_config":{"effort":"low","format":{"type":"json_schema","schema":)" +
                    schema + "}}"));
  EXPECT_EQ(request.format.field, "output_config.format.schema");
  EXPECT_LT(request.format.grammar.find("\\\"b\\\""), request.format.grammar.find("\\\"a\\\""));
}

TEST(AnthropicDoor, AWholeReply) {
  const ApiRequest request =
      MustRead(AnthropicDoor(), AnthropicBody(R"(,"stop_sequences":["x","END"])"));
  const auto reply =
      Json::Parse(Answer(AnthropicDoor(), request, EndingBy(FinishReason::kStopString, 1)));
  EXPECT_EQ(reply["id"], "msg_1");
  EXPECT_EQ(reply["type"], "message");
  EXPECT_EQ(reply["role"], "assistant");
  EXPECT_EQ(reply["content"],
            Json::Parse(R"([{"type":"text","text":"Hello\n","citations":null}])"));
  EXPECT_EQ(reply["stop_reason"], "stop_sequence");
  EXPECT_EQ(reply["stop_sequence"], "END");
  EXPECT_EQ(reply["usage"], Json::Parse(R"({"input_tokens":3,
      "cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":3})"));
}

TEST(AnthropicDoor, AStreamNamesItsEventsInOrder) {
  const ApiRequest request = MustRead(AnthropicDoor(), AnthropicBody(R"(,"stream":true)"));
  const auto events =
      Events(Answer(AnthropicDoor(), request, EndingBy(FinishReason::kContextFull)));
  std::vector<std::string> names;
  std::string text;
  for (const NamedEvent& event : events) {
    names.push_back(event.name);
    EXPECT_EQ(event.data["type"], event.name);
    if (event.name == "content_block_delta") text += event.data["delta"]["text"];
  }
  EXPECT_THAT(names, ElementsAre("message_start", "content_block_start", "content_block_delta",
                                 "content_block_delta", "content_block_stop", "message_delta",
                                 "message_stop"));
  EXPECT_EQ(text, "Hello\n");
  EXPECT_EQ(events[0].data["message"]["content"], Json::array());
  EXPECT_EQ(events[0].data["message"]["usage"]["input_tokens"], 7);
  EXPECT_EQ(events[5].data["delta"]["stop_reason"], "model_context_window_exceeded");
  EXPECT_TRUE(events[5].data["delta"]["stop_sequence"].is_null());
  EXPECT_EQ(events[5].data["usage"]["output_tokens"], 3);
}

constexpr char kAnthropicTools[] =
    R"(,"tools":[{"name":"f","description":"d","input_schema":{"type":"object",)"
    R"("properties":{"b":{},"a":{}}}},{"name":"g","input_schema":{"type":"object"}}])";

TEST(AnthropicDoor, ToolsAreThoseOfTheTemplate) {
  const ApiRequest request = MustRead(
      AnthropicDoor(),
      AnthropicBody(kAnthropicTools + std::string(R"(,"tool_choice":{"type":"any",)"
                                                  R"("disable_parallel_tool_use":true})")));
  EXPECT_TRUE(request.must_call && request.one_call);
  ASSERT_EQ(request.tools.size(), 2U);
  EXPECT_EQ(request.tools[0].parameters, R"({"type":"object","properties":{"b":{},"a":{}}})");
  EXPECT_EQ(Json::Parse(request.chat.tools)[0].dump(),
            R"({"type":"function","function":{"name":"f","description":"d","parameters":)"
            R"({"type":"object","properties":{"b":{},"a":{}}}}})");
  const ApiRequest named =
      MustRead(AnthropicDoor(),
               AnthropicBody(kAnthropicTools + std::string(R"(,"tool_choice":{"type":"tool",)"
                                                           R"("name":"g"})")));
  ASSERT_EQ(named.tools.size(), 1U);
  EXPECT_EQ(named.tools[0].name, "g");
}

TEST(AnthropicDoor, ToolsOfItsOwnAreLeftOutAndNamed) {
  const ApiRequest request =
      MustRead(AnthropicDoor(),
               AnthropicBody(
                   R"(,"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":5},)"
                   R"({"type":"bash_20250124","name":"bash"},{"name":"f","input_schema":{}},)"
                   R"({"type":"tool_search_tool_regex_20251119","name":"tool_search_tool_regex"}],)"
                   R"("mcp_servers":[{"type":"url","url":"https://x","name":"x"}])"));
  ASSERT_EQ(request.tools.size(), 1U);
  EXPECT_EQ(request.tools[0].name, "f");
  // One whose schema says nothing takes nothing.
  EXPECT_EQ(request.tools[0].parameters,
            R"({"type":"object","properties":{},"additionalProperties":false})");
  EXPECT_THAT(request.ignored,
              ElementsAre("tools[0].type=web_search_20250305", "tools[1].type=bash_20250124",
                          "tools[3].type=tool_search_tool_regex_20251119",
                          "mcp_servers=tools of other servers"));
}

// Claude Code's first block of `system` is another in each request.
TEST(AnthropicDoor, TheHeaderOfAnAccountIsNoPartOfTheChat) {
  const auto system = [](const std::string& cch) {
    const ApiRequest request = MustRead(
        AnthropicDoor(),
        AnthropicBody(
            R"(,"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.0.a; )"
            R"(cc_entrypoint=cli; cch=)" +
            cch + R"(;"},{"type":"text","text":"You are kind.","cache_control":{}}])"));
    EXPECT_EQ(request.chat.messages.size(), 2U);
    return request.chat.messages.front().content;
  };
  EXPECT_EQ(system("00000"), "You are kind.");
  EXPECT_EQ(system("f1a2b"), system("00000"));
}

TEST(AnthropicDoor, ALastTurnOfTheAssistantsIsGoneOnWith) {
  const ApiRequest request = MustRead(
      AnthropicDoor(), R"({"max_tokens":9,"messages":[{"role":"user","content":"Hi"},)"
                       R"({"role":"assistant","content":[{"type":"text","text":"Once upon"}]}]})");
  EXPECT_TRUE(request.chat.continues_last);
  EXPECT_EQ(request.chat.messages.back().content, "Once upon");
  EXPECT_FALSE(MustRead(AnthropicDoor(), AnthropicBody("")).chat.continues_last);
}

TEST(AnthropicDoor, BlocksOfConversationsBegunElsewhere) {
  const ApiRequest request = MustRead(
      AnthropicDoor(),
      R"({"max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":)"
      R"({"type":"text","media_type":"text/plain","data":"Doc. "}},{"type":"search_result",)"
      R"("title":"T","source":"s","content":[{"type":"text","text":"found"}]}]},)"
      R"({"role":"assistant","content":[{"type":"thinking","thinking":"A","signature":"EqQB"},)"
      R"({"type":"redacted_thinking","data":"x"},{"type":"thinking","thinking":"B","signature":""},)"
      R"({"type":"server_tool_use","id":"s","name":"web_search","input":{}},)"
      R"({"type":"web_search_tool_result","tool_use_id":"s","content":[]},)"
      R"({"type":"tool_use","id":"1","name":"f","input":{}}]},)"
      R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[)"
      R"({"type":"text","text":"x"},{"type":"image","source":{}}]}]}]})");
  const std::vector<ChatMessage>& turns = request.chat.messages;
  ASSERT_EQ(turns.size(), 3U);
  EXPECT_EQ(turns[0].content, "Doc. T\nfound");
  EXPECT_EQ(Json::Parse(turns[1].more)["reasoning_content"], "A\nB");
  EXPECT_EQ(turns[2].content, "x[image left out: only text can be read here]");
  EXPECT_THAT(request.ignored, ElementsAre("messages[1].content[3].type=server_tool_use",
                                           "messages[1].content[4].type=web_search_tool_result",
                                           "messages[2].content[0].content[1].type=image"));
  ExpectRefused(AnthropicDoor(),
                R"({"max_tokens":9,"messages":[{"role":"user","content":[{"type":"image",)"
                R"("source":{}}]}]})",
                "messages[0].content[0].type", "reads text only");
}

TEST(AnthropicDoor, ASchemaUnderItsOlderName) {
  const ApiRequest request = MustRead(
      AnthropicDoor(),
      AnthropicBody(R"(,"output_format":{"type":"json_schema","schema":{"type":"object"}})"));
  EXPECT_EQ(request.format.field, "output_format.schema");
}

TEST(AnthropicDoor, BlocksAreTurns) {
  const ApiRequest request =
      MustRead(AnthropicDoor(),
               R"({"max_tokens":9,"messages":[{"role":"user","content":"Hi"},{"role":"assistant",)"
               R"("content":[{"type":"thinking","thinking":"Hm.","signature":""},{"type":"text",)"
               R"("text":"See"},{"type":"tool_use","id":"1","name":"f","input":{"b":1,"a":2}}]},)"
               R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":)"
               R"([{"type":"text","text":"x"}]},{"type":"text","text":"So?"}]}]})");
  const std::vector<ChatMessage>& turns = request.chat.messages;
  ASSERT_EQ(turns.size(), 4U);
  EXPECT_EQ(turns[1].content, "See");
  EXPECT_EQ(turns[1].more,
            R"({"reasoning_content":"Hm.","tool_calls":[{"id":"1","type":"function",)"
            R"("function":{"name":"f","arguments":{"b":1,"a":2}}}]})");
  EXPECT_EQ(turns[2].role, "tool");
  EXPECT_EQ(turns[2].content, "x");
  EXPECT_EQ(turns[2].more, R"({"tool_call_id":"1","name":"f"})");
  EXPECT_EQ(turns[3].content, "So?");
}

std::vector<Burst> AnthropicCallingBursts() {
  using Kind = ChatPart::Kind;
  std::vector<Burst> bursts(2);
  bursts[0].parts = {{Kind::kReasoning, "Hm."}, {Kind::kContent, "See"}, {Kind::kCall, "f"}};
  bursts[1].parts = {{Kind::kArguments, "{\"a\":1}"}, {Kind::kCall, "g"}, {Kind::kArguments, "{}"}};
  bursts[1].ending = EndingBy(FinishReason::kEndOfSequence);
  return bursts;
}

std::string AnthropicAnswer(const ApiRequest& request) {
  const auto writer = AnthropicDoor().writer(request, {.id = "msg_1", .model = "m"}, nullptr);
  std::string out;
  writer->Start({}, &out);
  for (Burst& burst : AnthropicCallingBursts()) writer->Add(std::move(burst), &out);
  writer->End(&out);
  return out;
}

TEST(AnthropicDoor, AStreamOfBlocksComesToTheWholeReply) {
  const auto whole = Json::Parse(AnthropicAnswer(MustRead(AnthropicDoor(), AnthropicBody(""))));
  EXPECT_EQ(whole["stop_reason"], "tool_use");
  ASSERT_EQ(whole["content"].size(), 4U);
  EXPECT_EQ(whole["content"][0]["thinking"], "Hm.");
  EXPECT_EQ(whole["content"][2]["input"].dump(), R"({"a":1})");
  Json content = Json::array();
  std::string input;
  int open = 0;
  for (const NamedEvent& event :
       Events(AnthropicAnswer(MustRead(AnthropicDoor(), AnthropicBody(R"(,"stream":true)"))))) {
    const Json& data = event.data;
    if (event.name == "content_block_start") {
      EXPECT_EQ(data["index"], content.size());
      EXPECT_EQ(++open, 1);
      content.push_back(data["content_block"]);
      input.clear();
    } else if (event.name == "content_block_delta") {
      Json& block = content.back();
      const Json& delta = data["delta"];
      for (const char* name : {"text", "thinking"}) {
        if (delta.contains(name))
          block[name] = block[name].get<std::string>() + delta[name].get<std::string>();
      }
      input += delta.value("partial_json", "");
    } else if (event.name == "content_block_stop") {
      EXPECT_EQ(--open, 0);
      if (!input.empty()) content.back()["input"] = Json::Parse(input);
    } else if (event.name == "message_delta") {
      EXPECT_EQ(data["delta"]["stop_reason"], "tool_use");
    }
  }
  EXPECT_EQ(content, whole["content"]);
}

TEST(AnthropicDoor, Errors) {
  EXPECT_EQ(AnthropicDoor().error({.status = 429, .message = "full"}),
            R"({"type":"error","error":{"type":"rate_limit_error","message":"full"}})");
  const ApiRequest request = MustRead(AnthropicDoor(), AnthropicBody(R"(,"stream":true)"));
  std::string out;
  AnthropicDoor().writer(request, {}, nullptr)->Fail({.status = 504, .message = "late"}, &out);
  EXPECT_EQ(Events(out).at(0).name, "error");
  EXPECT_EQ(Events(out).at(0).data["error"]["type"], "timeout_error");
}

}  // namespace
}  // namespace foretoken::server
