#include "apps/foretoken/server/doors/doors.h"

#include <fmt/ranges.h>

#include "apps/foretoken/server/doors/door_testing.h"

namespace foretoken::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ResponsesDoor, ReadsWhatItsClientsSend) {
  const ApiRequest request = MustRead(
      ResponsesDoor(),
      R"({"instructions":"Be brief.","input":[{"role":"user","content":"Hi"},)"
      R"({"id":"msg_1","type":"message","status":"completed","role":"assistant","content":)"
      R"([{"type":"output_text","text":"Ho","annotations":[],"logprobs":[]}]},)"
      R"({"role":"developer","content":[{"type":"input_text","text":"Hm"}]}],)"
      R"("max_output_tokens":9,"store":true,"previous_response_id":null,"temperature":0.5,)"
      R"("include":["message.output_text.logprobs"],"top_logprobs":2,"metadata":{"a":"b"}})");
  ASSERT_EQ(request.chat.messages.size(), 4U);
  EXPECT_EQ(request.chat.messages[0].content, "Be brief.");
  EXPECT_EQ(request.chat.messages[2].content, "Ho");
  EXPECT_EQ(request.chat.messages[3].role, "system");
  EXPECT_EQ(request.stop.max_tokens, 9);
  EXPECT_EQ(request.sampling.top_logprobs, 2);
  EXPECT_THAT(request.ignored, ElementsAre());
  const ApiRequest text = MustRead(ResponsesDoor(), R"({"input":"Hi"})");
  EXPECT_EQ(text.chat.messages.at(0).role, "user");
  EXPECT_EQ(text.chat.messages.at(0).content, "Hi");
  EXPECT_EQ(text.sampling.top_logprobs, -1);
}

TEST(ResponsesDoor, RefusesWhatItCannotHonour) {
  const auto refused = [](const std::string& more, const std::string& field,
                          const std::string& saying) {
    ExpectRefused(ResponsesDoor(), R"({"input":"Hi",)" + more + "}", field, saying);
  };
  ExpectRefused(ResponsesDoor(), "{}", "input", "a string or an array");
  ExpectRefused(ResponsesDoor(), R"({"input":[{"type":"item_reference","id":"x"}]})", "input[0].id",
                "Item with id 'x' not found");
  ExpectRefused(ResponsesDoor(),
                R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})",
                "input[0].content", "text only");
  refused(R"("conversation":{"id":"c"})", "conversation", "keeps no conversations");
  refused(R"("background":true)", "background", "empty");
  refused(R"("tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"})",
          "tool_choice.type", "'web_search' is none of the tools");
  refused(R"("tools":[{"type":"web_search"}],"tool_choice":"required")", "tool_choice",
          "no function among those sent");
  refused(R"("tool_choice":"required")", "tool_choice", "needs 'tools'");
  refused(R"("truncation":"auto")", "truncation", "disabled");
  refused(R"("text":{"format":{"type":"xml"}})", "text.format.type", "json_schema");
  refused(R"("text":{"format":{"type":"json_schema","name":"n","schema":{"not":{}}}})",
          "text.format.schema", "no value matches");
}

TEST(ResponsesDoor, PartsOfEarlierAnswersMayBeNamed) {
  const std::string message =
      R"({"id":"m","type":"message","status":"completed","role":"assistant",)"
      R"("content":[{"type":"output_text","annotations":[],"text":"Wait."}]})";
  const std::string call =
      R"({"id":"f","type":"function_call","status":"completed","call_id":"c","name":"look",)"
      R"("arguments":"{}"})";
  const std::string answer = R"({"type":"function_call_output","call_id":"c","output":"Fog."})";
  const std::string question = R"({"role":"user","content":"Hi"})";
  const ApiDefaults defaults = {.kept_item = [&](const std::string& id) {
    return id == "m" || id == "f" ? std::make_shared<const std::string>(id == "m" ? message : call)
                                  : nullptr;
  }};
  const auto read = [&defaults](const std::vector<std::string>& items) {
    return ResponsesDoor().read(fmt::format(R"({{"input":[{}]}})", fmt::join(items, ",")),
                                defaults);
  };
  const auto reference = [](const std::string& id) {
    return fmt::format(R"({{"type":"item_reference","id":"{}"}})", id);
  };
  const Result<ApiRequest> named = read({question, reference("m"), reference("f"), answer});
  const Result<ApiRequest> sent = read({question, message, call, answer});
  ASSERT_TRUE(named.ok() && sent.ok());
  ASSERT_EQ(named->chat.messages.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(named->chat.messages[i].role, sent->chat.messages[i].role);
    EXPECT_EQ(named->chat.messages[i].content, sent->chat.messages[i].content);
    EXPECT_EQ(named->chat.messages[i].more, sent->chat.messages[i].more);
  }
  EXPECT_EQ(named->chat.messages[1].content, "Wait.");
  const auto refused = [&read](const std::vector<std::string>& items, const std::string& field,
                               const std::string& saying) {
    const Result<ApiRequest> request = read(items);
    ASSERT_FALSE(request.ok());
    EXPECT_EQ(request.error().field, field);
    EXPECT_THAT(request.error().message, HasSubstr(saying));
  };
  refused({reference("m"), reference("m")}, "input[1].id", "Duplicate item");
  refused({question, reference("z")}, "input[1].id", "Item with id 'z' not found");
  refused({R"({"type":"item_reference"})"}, "input[0].id", "a string");
}

TEST(ResponsesDoor, AWholeReply) {
  const ApiRequest request =
      MustRead(ResponsesDoor(),
               R"({"instructions":"Be brief.","input":"Hi","temperature":0.8,"metadata":{"a":"b"},)"
               R"("text":{"format":{"type":"json_object"}}})");
  const auto reply =
      Json::Parse(Answer(ResponsesDoor(), request, EndingBy(FinishReason::kMaxTokens)));
  EXPECT_EQ(reply["object"], "response");
  EXPECT_EQ(reply["status"], "incomplete");
  EXPECT_EQ(reply["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(reply["instructions"], "Be brief.");
  EXPECT_EQ(reply["temperature"], 0.8);
  EXPECT_EQ(reply["metadata"]["a"], "b");
  EXPECT_EQ(reply["text"]["format"]["type"], "json_object");
  EXPECT_EQ(reply["store"], true);
  ASSERT_EQ(reply["output"].size(), 1U);
  EXPECT_EQ(reply["output"][0]["status"], "incomplete");
  EXPECT_EQ(reply["output"][0]["content"][0]["text"], "Hello\n");
  EXPECT_EQ(reply["usage"]["input_tokens"], 7);
  EXPECT_EQ(reply["usage"]["input_tokens_details"]["cached_tokens"], 4);
  EXPECT_EQ(reply["usage"]["total_tokens"], 10);
}

TEST(ResponsesDoor, AStreamNumbersItsEvents) {
  const ApiRequest request = MustRead(ResponsesDoor(), R"({"input":"Hi","stream":true})");
  const auto events =
      Events(Answer(ResponsesDoor(), request, EndingBy(FinishReason::kEndOfSequence)));
  std::vector<std::string> names;
  std::string text;
  for (std::size_t i = 0; i < events.size(); ++i) {
    names.push_back(events[i].name);
    EXPECT_EQ(events[i].data["type"], events[i].name);
    EXPECT_EQ(events[i].data["sequence_number"], i);
    if (events[i].name == "response.output_text.delta") text += events[i].data["delta"];
  }
  EXPECT_THAT(names, ElementsAre("response.created", "response.in_progress",
                                 "response.output_item.added", "response.content_part.added",
                                 "response.output_text.delta", "response.output_text.delta",
                                 "response.output_text.done", "response.content_part.done",
                                 "response.output_item.done", "response.completed"));
  EXPECT_EQ(text, "Hello\n");
  EXPECT_EQ(events[6].data["text"], text);
  EXPECT_EQ(events[0].data["response"]["status"], "in_progress");
  const Json& last = events.back().data["response"];
  EXPECT_EQ(last["status"], "completed");
  EXPECT_EQ(last["output"][0]["id"], events[4].data["item_id"]);
  EXPECT_EQ(last["output"][0]["content"][0]["text"], text);
}

TEST(ResponsesDoor, CallsAndTheirAnswersAreItems) {
  const ApiRequest request = MustRead(
      ResponsesDoor(),
      R"({"input":[{"role":"user","content":"Hi"},{"type":"reasoning","id":"rs_1","summary":[],)"
      R"("content":[{"type":"reasoning_text","text":"Hm."}]},{"type":"function_call","id":"fc_1",)"
      R"("call_id":"1","name":"f","arguments":"{\"b\":1,\"a\":2}","status":"completed"},)"
      R"({"type":"function_call_output","call_id":"1","output":"x"}],"tools":[{"type":"function",)"
      R"("name":"f","parameters":{"type":"object","properties":{"b":{},"a":{}}},"strict":true}],)"
      R"("tool_choice":{"type":"function","name":"f"},"parallel_tool_calls":false})");
  const std::vector<ChatMessage>& turns = request.chat.messages;
  ASSERT_EQ(turns.size(), 3U);
  EXPECT_EQ(turns[1].role, "assistant");
  EXPECT_EQ(turns[1].more,
            R"({"reasoning_content":"Hm.","tool_calls":[{"id":"1","type":"function",)"
            R"("function":{"name":"f","arguments":{"b":1,"a":2}}}]})");
  EXPECT_EQ(turns[2].role, "tool");
  EXPECT_EQ(turns[2].more, R"({"tool_call_id":"1","name":"f"})");
  EXPECT_EQ(Json::Parse(request.chat.tools)[0]["function"]["parameters"].dump(),
            R"({"type":"object","properties":{"b":{},"a":{}}})");
  EXPECT_TRUE(request.must_call && request.one_call && request.tools.at(0).strict);
}

std::string ResponsesAnswer(const ApiRequest& request) {
  using Kind = ChatPart::Kind;
  const auto writer = ResponsesDoor().writer(request, {.id = "resp_1", .model = "m"}, nullptr);
  std::string out;
  writer->Start({}, &out);
  writer->Add({.parts = {{Kind::kReasoning, "Hm."}, {Kind::kContent, "See"}, {Kind::kCall, "f"}}},
              &out);
  writer->Add({.parts = {{Kind::kArguments, "{}"},
                         {Kind::kCall, "g"},
                         {Kind::kArguments, "{"},
                         {Kind::kArguments, "}"}},
               .ending = EndingBy(FinishReason::kEndOfSequence)},
              &out);
  writer->End(&out);
  return out;
}

TEST(ResponsesDoor, AStreamOfItemsComesToTheWholeReply) {
  const auto whole =
      Json::Parse(ResponsesAnswer(MustRead(ResponsesDoor(), R"({"input":"Hi"})")))["output"];
  ASSERT_EQ(whole.size(), 4U);
  EXPECT_EQ(whole[0]["type"], "reasoning");
  EXPECT_EQ(whole[0]["content"][0]["text"], "Hm.");
  EXPECT_EQ(whole[1]["content"][0]["text"], "See");
  EXPECT_EQ(whole[2]["name"], "f");
  EXPECT_EQ(whole[3]["arguments"], "{}");
  EXPECT_NE(whole[2]["call_id"], whole[3]["call_id"]);
  Json items = Json::array();
  std::string texts;
  for (const NamedEvent& event :
       Events(ResponsesAnswer(MustRead(ResponsesDoor(), R"({"input":"Hi","stream":true})")))) {
    if (event.name.ends_with(".delta")) {
      EXPECT_EQ(event.data["output_index"], items.size());
      texts += event.data["delta"];
    }
    if (event.name == "response.output_item.done") items.push_back(event.data["item"]);
  }
  EXPECT_EQ(items, whole);
  EXPECT_EQ(texts, "Hm.See{}{}");
}

// What Codex sends: functions beside tools of other types, and those of an MCP server.
constexpr char kCodexTools[] =
    R"("tools":[{"type":"function","name":"shell","strict":false,"parameters":{"type":"object"}},)"
    R"({"type":"web_search","external_web_access":true},{"type":"local_shell"},)"
    R"({"type":"custom","name":"apply_patch","format":{"type":"grammar","syntax":"lark",)"
    R"("definition":"start: x"}},{"type":"custom","name":"note","description":"Writes it down."},)"
    R"({"type":"namespace","name":"mcp__memory","description":"d","tools":[{"type":"function",)"
    R"("name":"find","parameters":{},"defer_loading":true}]}])";

TEST(ResponsesDoor, ToolsOfOtherTypesAreLeftOutAndNamed) {
  const ApiRequest request =
      MustRead(ResponsesDoor(), R"({"input":"Hi",)" + std::string(kCodexTools) + "}");
  std::vector<std::string> names;
  for (const ChatTool& tool : request.tools) names.push_back(tool.name);
  EXPECT_THAT(names, ElementsAre("shell", "note", "mcp__memory__find"));
  EXPECT_THAT(request.ignored, ElementsAre("tools[1].type=web_search", "tools[2].type=local_shell",
                                           "tools[3].type=custom"));
  const auto told = Json::Parse(request.chat.tools);
  ASSERT_EQ(told.size(), 3U);
  // A tool that takes a text is a function of one string to the model.
  EXPECT_EQ(told[1]["function"]["parameters"]["properties"].dump(),
            R"({"input":{"type":"string"}})");
  EXPECT_EQ(told[2]["function"].dump(),
            R"({"name":"mcp__memory__find","parameters":{"type":"object","properties":{},)"
            R"("additionalProperties":false}})");
  const ApiRequest chosen = MustRead(
      ResponsesDoor(), R"({"input":"Hi",)" + std::string(kCodexTools) +
                           R"(,"tool_choice":{"type":"function","namespace":"mcp__memory",)"
                           R"("name":"find"}})");
  EXPECT_EQ(chosen.tools.at(0).name, "mcp__memory__find");
}

TEST(ResponsesDoor, CallsHaveTheShapeOfTheirTools) {
  using Kind = ChatPart::Kind;
  const std::string body = R"({"input":"Hi",)" + std::string(kCodexTools);
  const auto answer = [](const ApiRequest& request) {
    const auto writer = ResponsesDoor().writer(request, {.id = "resp_1", .model = "m"}, nullptr);
    std::string out;
    writer->Start({}, &out);
    writer->Add({.parts = {{Kind::kCall, "note"}, {Kind::kArguments, "{\"input\":\"a"}}}, &out);
    writer->Add({.parts = {{Kind::kArguments, "\\nb\"}"},
                           {Kind::kCall, "mcp__memory__find"},
                           {Kind::kArguments, "{}"}},
                 .ending = EndingBy(FinishReason::kEndOfSequence)},
                &out);
    writer->End(&out);
    return out;
  };
  const auto whole = Json::Parse(answer(MustRead(ResponsesDoor(), body + "}")))["output"];
  ASSERT_EQ(whole.size(), 2U);
  EXPECT_EQ(whole[0]["type"], "custom_tool_call");
  EXPECT_EQ(whole[0]["name"], "note");
  EXPECT_EQ(whole[0]["input"], "a\nb");
  EXPECT_EQ(whole[1]["type"], "function_call");
  EXPECT_EQ(whole[1]["namespace"], "mcp__memory");
  EXPECT_EQ(whole[1]["name"], "find");
  Json items = Json::array();
  std::string input;
  for (const NamedEvent& event :
       Events(answer(MustRead(ResponsesDoor(), body + R"(,"stream":true})")))) {
    if (event.name == "response.custom_tool_call_input.delta") input += event.data["delta"];
    if (event.name == "response.custom_tool_call_input.done") {
      EXPECT_EQ(event.data["input"], input);
    }
    if (event.name == "response.output_item.done") items.push_back(event.data["item"]);
  }
  EXPECT_EQ(input, "a\nb");
  EXPECT_EQ(items, whole);
  // What was answered is read again as what the model had called.
  const std::vector<ChatMessage> turns = TurnsOfOutput(whole);
  ASSERT_EQ(turns.size(), 1U);
  const auto calls = Json::Parse(turns[0].more)["tool_calls"];
  EXPECT_EQ(calls[0]["function"].dump(), R"({"name":"note","arguments":{"input":"a\nb"}})");
  EXPECT_EQ(calls[1]["function"]["name"], "mcp__memory__find");
}

TEST(ResponsesDoor, AConversationBegunWithAnotherServer) {
  const ApiRequest request = MustRead(
      ResponsesDoor(),
      R"({"input":[{"role":"user","content":"Hi"},{"type":"reasoning","id":"rs_1","summary":[)"
      R"({"type":"summary_text","text":"Look."}],"encrypted_content":"gAAA"},)"
      R"({"type":"web_search_call","id":"ws_1","status":"completed","action":{"query":"q"}},)"
      R"({"type":"custom_tool_call","call_id":"1","name":"apply_patch","input":"p"},)"
      R"({"type":"custom_tool_call_output","call_id":"1","output":[{"type":"input_text",)"
      R"("text":"done"},{"type":"input_image","image_url":"x"}]},)"
      R"({"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]},)"
      R"({"type":"compaction","encrypted_content":"x"},{"role":"user","content":"So?"}]})");
  const std::vector<ChatMessage>& turns = request.chat.messages;
  ASSERT_EQ(turns.size(), 5U);
  EXPECT_EQ(turns[1].more,
            R"({"reasoning_content":"Look.","tool_calls":[{"id":"1","type":"function",)"
            R"("function":{"name":"apply_patch","arguments":{"input":"p"}}}]})");
  EXPECT_EQ(turns[2].content, "done[input_image left out: only text can be read here]");
  EXPECT_EQ(turns[3].content, "No.");
  EXPECT_THAT(request.ignored,
              ElementsAre("input[2].type=web_search_call", "input[4].output[1].type=input_image",
                          "input[6].type=compaction"));
}

TEST(ResponsesDoor, WhatIsKept) {
  const ApiRequest request =
      MustRead(ResponsesDoor(),
               R"({"input":"Hi","instructions":"Be kind.","previous_response_id":"resp_0"})");
  EXPECT_TRUE(request.keep.store);
  EXPECT_EQ(request.keep.previous, "resp_0");
  EXPECT_EQ(request.keep.first_turn, 1U);  // Instructions are for one request.
  WholeReply kept;
  ReplyHead head{.id = "resp_1", .model = "m"};
  head.keep = [&kept](WholeReply reply) { kept = std::move(reply); };
  const auto writer = ResponsesDoor().writer(request, head, nullptr);
  std::string out;
  writer->Start({}, &out);
  writer->Add({.parts = {{ChatPart::Kind::kReasoning, "Hm."}, {ChatPart::Kind::kContent, "Ho"}},
               .ending = EndingBy(FinishReason::kEndOfSequence)},
              &out);
  writer->End(&out);
  EXPECT_EQ(kept.json, out);
  const Json reply = Json::Parse(out);
  EXPECT_EQ(reply["previous_response_id"], "resp_0");
  ASSERT_EQ(kept.turns.size(), 1U);
  EXPECT_EQ(kept.turns[0].content, "Ho");
  EXPECT_EQ(kept.turns[0].more, R"({"reasoning_content":"Hm."})");
  ASSERT_EQ(kept.items.size(), 2U);
  for (Json item : reply["output"]) {
    for (Json& part : item["content"]) part.erase("logprobs");
    EXPECT_EQ(kept.items.at(item["id"]), item.dump());
  }
  EXPECT_FALSE(MustRead(ResponsesDoor(), R"({"input":"Hi","store":false})").keep.store);
}

TEST(ResponsesDoor, AStreamThatFails) {
  const ApiRequest request = MustRead(ResponsesDoor(), R"({"input":"Hi","stream":true})");
  std::string out;
  ResponsesDoor().writer(request, {.id = "resp_1"}, nullptr)->Fail({.message = "late"}, &out);
  EXPECT_EQ(Events(out).at(0).name, "response.failed");
  EXPECT_EQ(Events(out).at(0).data["response"]["error"]["message"], "late");
}

TEST(Responses, WhatCodexSendsIsKnown) {
  const Result<ApiRequest> read = ResponsesDoor().read(
      R"({"model":"m","instructions":"You are a coding agent.","input":[)"
      R"({"type":"message","role":"developer","content":[{"type":"input_text","text":"a"}]},)"
      R"({"type":"message","role":"user","content":[{"type":"input_text","text":"b"}]},)"
      R"({"type":"reasoning","id":"rs_1","summary":[],"content":null,"encrypted_content":"x"},)"
      R"({"type":"function_call","id":"fc_1","name":"shell","arguments":"{}","call_id":"c"},)"
      R"({"type":"function_call_output","call_id":"c","output":"ok"}],)"
      R"("tools":[{"type":"function","name":"shell","description":"d","strict":false,)"
      R"("parameters":{"type":"object","properties":{"command":{"type":"array",)"
      R"("items":{"type":"string"}}},"required":["command"],"additionalProperties":false}},)"
      R"({"type":"custom","name":"apply_patch","description":"d","format":{"type":"grammar",)"
      R"("syntax":"lark","definition":"start: x"}},{"type":"local_shell"},)"
      R"({"type":"web_search","external_web_access":false}],)"
      R"("tool_choice":"auto","parallel_tool_calls":true,)"
      R"("reasoning":{"effort":"medium","summary":"auto"},"store":false,"stream":true,)"
      R"("include":["reasoning.encrypted_content"],"service_tier":"auto",)"
      R"("prompt_cache_key":"k","text":{"verbosity":"low"},"client_metadata":{"a":"b"}})",
      {.strict_fields = true});
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->tools.size(), 1U);
  EXPECT_THAT(read->ignored, ElementsAre("tools[1].type=custom", "tools[2].type=local_shell",
                                         "tools[3].type=web_search", "text.verbosity=low"));
}

}  // namespace
}  // namespace foretoken::server
