#include "apps/foretoken/server/doors/doors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/foretoken/server/doors/door_testing.h"
#include "foretoken/json_schema.h"

namespace foretoken::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Result<ApiRequest> ReadChat(const std::string& more) {
  const std::string body = std::string("{") + kGreeting + (more.empty() ? "" : "," + more) + "}";
  return ChatDoor().read(body, {});
}

ApiRequest GoodChat(const std::string& more) {
  Result<ApiRequest> request = ReadChat(more);
  EXPECT_TRUE(request.ok()) << more << ": " << request.error().message;
  return *request;
}

void ExpectChatRefused(const std::string& more, const std::string& field,
                       const std::string& saying) {
  ExpectRefused(ChatDoor(), std::string("{") + kGreeting + "," + more + "}", field, saying);
}

TEST(OpenAi, Datastore) {
  EXPECT_FALSE(GoodChat("").datastore.given);
  EXPECT_TRUE(GoodChat(R"("datastore":{})").datastore.learn);
  const DatastoreWish wish =
      GoodChat(R"("datastore":{"namespace":"alice","learn":false})").datastore;
  EXPECT_TRUE(wish.given);
  EXPECT_EQ(wish.tenant, "alice");
  EXPECT_FALSE(wish.learn);
  ExpectChatRefused(R"("datastore":{"namespace":""})", "datastore.namespace", "must be a name");
  ExpectChatRefused(R"("datastore":{"learn":1})", "datastore.learn", "true or false");
  ExpectChatRefused(R"("datastore":{"folder":"x"})", "datastore.folder", "folder");
}

TEST(OpenAi, EverySamplingOptionArrives) {
  const ApiRequest request = GoodChat(
      R"("temperature":0.7,"top_k":40,"top_p":0.9,"min_p":0.05,"repetition_penalty":1.1,)"
      R"("frequency_penalty":0.5,"presence_penalty":-0.25,"logit_bias":{"42":-1.5},"seed":9,)"
      R"("logprobs":true,"top_logprobs":3,"n":2,"max_tokens":7,"stop":["a","b"],)"
      R"("stop_token_ids":[5],"ignore_eos":true,"stream":true,)"
      R"("stream_options":{"include_usage":true},"speculation_trace":true)");
  EXPECT_FLOAT_EQ(request.sampling.temperature, 0.7F);
  EXPECT_EQ(request.sampling.top_k, 40);
  EXPECT_FLOAT_EQ(request.sampling.top_p, 0.9F);
  EXPECT_FLOAT_EQ(request.sampling.min_p, 0.05F);
  EXPECT_FLOAT_EQ(request.sampling.repetition_penalty, 1.1F);
  EXPECT_FLOAT_EQ(request.sampling.frequency_penalty, 0.5F);
  EXPECT_FLOAT_EQ(request.sampling.presence_penalty, -0.25F);
  EXPECT_THAT(request.sampling.logit_bias, ElementsAre(Pair(42, -1.5F)));
  EXPECT_EQ(request.sampling.seed, 9U);
  EXPECT_TRUE(request.seeded);
  EXPECT_EQ(request.sampling.top_logprobs, 3);
  EXPECT_EQ(request.n, 2);
  EXPECT_EQ(request.stop.max_tokens, 7);
  EXPECT_THAT(request.stop.stop_strings, ElementsAre("a", "b"));
  EXPECT_THAT(request.stop.stop_tokens, ElementsAre(5));
  EXPECT_TRUE(request.stop.ignore_eos);
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  EXPECT_TRUE(request.trace);
}

TEST(OpenAi, WhatIsLeftOutIsTheDefault) {
  ApiDefaults defaults;
  defaults.sampling.temperature = 0.5F;
  defaults.sampling.top_k = 12;
  const Result<ApiRequest> chat =
      ChatDoor().read(std::string("{") + kGreeting + ",\"top_k\":null}", defaults);
  ASSERT_TRUE(chat.ok());
  EXPECT_FLOAT_EQ(chat.value().sampling.temperature, 0.5F);
  EXPECT_EQ(chat.value().sampling.top_k, 12);
  EXPECT_EQ(chat.value().stop.max_tokens, 0);
  EXPECT_EQ(chat.value().sampling.top_logprobs, -1);
  EXPECT_FALSE(chat.value().seeded);
  const Result<ApiRequest> completion = CompletionDoor().read(R"({"prompt":"a"})", defaults);
  ASSERT_TRUE(completion.ok());
  EXPECT_EQ(completion.value().stop.max_tokens, 16);
}

TEST(OpenAi, MessagesOfEveryForm) {
  const Result<ApiRequest> request = ChatDoor().read(
      R"({"messages":[{"role":"developer","content":"S"},)"
      R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},)"
      R"({"role":"assistant","content":"c","refusal":null,"annotations":[]}]})",
      {});
  ASSERT_TRUE(request.ok()) << request.error().message;
  ASSERT_EQ(request.value().chat.messages.size(), 3U);
  EXPECT_EQ(request.value().chat.messages[0].role, "system");
  EXPECT_EQ(request.value().chat.messages[1].content, "ab");
  EXPECT_EQ(request.value().chat.messages[2].role, "assistant");
}

TEST(OpenAi, VariablesOfTheChatTemplate) {
  const ApiDefaults defaults{.template_variables = R"({"a": 1, "b": 2})"};
  const auto read = [&](const std::string& variables) {
    return ChatDoor().read(R"({"messages":[{"role":"user","content":"x"}],)"
                           R"("chat_template_kwargs":)" +
                               variables + "}",
                           defaults);
  };
  EXPECT_EQ(read("null")->chat.variables, R"({"a": 1, "b": 2})");
  EXPECT_EQ(read(R"({"b": [3], "c": false})")->chat.variables, R"({"a":1,"b":[3],"c":false})");
  EXPECT_EQ(read("[]").error().field, "chat_template_kwargs");
  EXPECT_THAT(read(R"({"tools": []})").error().message, testing::HasSubstr("'tools'"));
}

TEST(OpenAi, PromptsOfEveryForm) {
  const auto prompts = [](const std::string& prompt) {
    Result<ApiRequest> request = CompletionDoor().read("{\"prompt\":" + prompt + "}", {});
    EXPECT_TRUE(request.ok()) << prompt;
    return request->prompts;
  };
  EXPECT_EQ(std::get<std::string>(prompts("\"a\"")[0]), "a");
  EXPECT_THAT(std::get<std::vector<Token>>(prompts("[1,2]")[0]), ElementsAre(1, 2));
  EXPECT_EQ(prompts("[\"a\",[3]]").size(), 2U);
  // No token, but the engine has to say so: it knows the vocabulary.
  EXPECT_THAT(std::get<std::vector<Token>>(prompts("[99999999999]")[0]), ElementsAre(-1));
}

TEST(OpenAi, SpeculationIsAWish) {
  const ApiRequest request = GoodChat(
      R"("speculative":{"mode":"ssd","lookahead":4,"fanout":[3,2,1,1,4],"fallback":"ngram",)"
      R"("tree_width":2})");
  EXPECT_EQ(request.speculation->mode, Mode::kSsd);
  EXPECT_EQ(request.speculation->lookahead, 4);
  EXPECT_THAT(request.speculation->fanout->counts, ElementsAre(3, 2, 1, 1, 4));
  EXPECT_EQ(request.speculation->fallback, Fallback::kNgram);
  EXPECT_EQ(request.speculation->tree_width, 2);
  const ApiRequest window =
      GoodChat(R"("speculative":{"mode":"lookahead","lookahead_window":4,"lookahead_guesses":3})");
  EXPECT_EQ(window.speculation->lookahead_window, 4);
  EXPECT_EQ(window.speculation->lookahead_guesses, 3);
  EXPECT_EQ(GoodChat(R"("speculative":{"off":true})").speculation->mode, Mode::kAr);
  EXPECT_FALSE(GoodChat(R"("speculative":{"off":false})").speculation->mode.has_value());
  EXPECT_THAT(GoodChat(R"("speculative":{"fanout":5})").speculation->fanout->counts,
              ElementsAre(5));
}

TEST(OpenAi, OutputFormats) {
  EXPECT_EQ(GoodChat(R"("response_format":{"type":"text"})").format.grammar, "");
  const OutputFormat object = GoodChat(R"("response_format":{"type":"json_object"})").format;
  EXPECT_EQ(object.grammar, JsonObjectGrammar());
  EXPECT_EQ(object.field, "response_format");
  const OutputFormat grammar =
      GoodChat(R"("grammar":"root ::= \"a\"","response_format":{"type":"text"})").format;
  EXPECT_EQ(grammar.grammar, "root ::= \"a\"");
  EXPECT_EQ(grammar.field, "grammar");
}

TEST(OpenAi, AJsonSchemaKeepsTheOrderOfItsProperties) {
  const OutputFormat format =
      GoodChat(R"("response_format":{"json_schema":{"name":"a-1","description":"d","strict":false,)"
               R"("schema":{"properties":{"z":{"const":1},"a":{"const":2}},"required":["a","z"]}},)"
               R"("type":"json_schema"})")
          .format;
  EXPECT_EQ(format.field, "response_format.json_schema.schema");
  EXPECT_EQ(format.grammar,
            *JsonSchemaGrammar(
                R"({"properties":{"z":{"const":1},"a":{"const":2}},"required":["a","z"]})"));
}

TEST(OpenAi, OutputFormatsThatAreWrongAreRefused) {
  ExpectChatRefused(R"("grammar":7)", "grammar", "must be a string");
  ExpectChatRefused(R"("grammar":"")", "grammar", "must be a grammar");
  ExpectChatRefused(R"("grammar":"a","response_format":{"type":"json_object"})", "response_format",
                    "contradict");
  const auto refused = [](const std::string& format, const std::string& field,
                          const std::string& saying) {
    ExpectChatRefused("\"response_format\":" + format,
                      "response_format" + (field.empty() ? "" : "." + field), saying);
  };
  refused("\"json\"", "", "must be an object");
  refused("{}", "type", "text, json_object or json_schema");
  refused(R"({"type":"yaml"})", "type", "text, json_object or json_schema");
  refused(R"({"type":"json_schema"})", "json_schema", "must be {\"name\"");
  const auto schema = [&refused](const std::string& members, const std::string& field,
                                 const std::string& saying) {
    refused(R"({"type":"json_schema","json_schema":{)" + members + "}}", "json_schema." + field,
            saying);
  };
  schema(R"("schema":{})", "name", "1 to 64");
  schema(R"("name":"a b","schema":{})", "name", "1 to 64");
  schema(R"("name":"a")", "schema", "must be a JSON Schema");
  schema(R"("name":"a","schema":true)", "schema", "must be a JSON Schema");
  schema(R"("name":"a","strict":1,"schema":{})", "strict", "true or false");
  schema(R"("name":"a","schema":{"properties":{"b":{"unevaluatedItems":{}}}})", "schema",
         "schema, at /properties/b: the keyword 'unevaluatedItems'");
}

TEST(OpenAi, AMemberGivenTwiceIsRefused) {
  ExpectChatRefused(R"("seed":1,"seed":2)", "", "the body has 'seed' twice");
  ExpectChatRefused(R"("stream_options":{"a":1,"b":[{"c":1,"c":2}]})", "", "'c' twice");
  GoodChat(R"("speculative":{"mode":"ar"},"stream":true,"stream_options":{},"logit_bias":{"1":0})");
}

TEST(OpenAi, UnknownFieldsAreNotedOrRefused) {
  const std::string more =
      R"("tempersture":1,"stream":true,"stream_options":{"usage":true},"suffix":null)";
  EXPECT_THAT(GoodChat(more).ignored, UnorderedElementsAre("tempersture", "stream_options.usage"));
  const Result<ApiRequest> strict =
      ChatDoor().read(std::string("{") + kGreeting + "," + more + "}", {.strict_fields = true});
  ASSERT_FALSE(strict.ok());
  EXPECT_EQ(strict.error().field, "stream_options.usage");
  EXPECT_THAT(strict.error().message, HasSubstr("not a field that this server supports"));
  // A wish about speculation that would be lost is refused in any case.
  ExpectChatRefused(R"("speculative":{"k":1})", "speculative.k", "not a field");
  ExpectChatRefused(R"("datastore":{"folder":"x"})", "datastore.folder", "not a field");
}

TEST(OpenAi, AdaptersAreNamedOrTheOnlyOneOfAList) {
  EXPECT_FALSE(GoodChat("").adapter.given);
  EXPECT_EQ(GoodChat(R"("lora":"french")").adapter.name, "french");
  const AdapterWish named = GoodChat(R"("lora":{"name":"french","scale":-0.5})").adapter;
  EXPECT_EQ(named.name, "french");
  EXPECT_EQ(named.scale, -0.5F);
  const AdapterWish placed = GoodChat(R"("lora":[{"id":0,"scale":0},{"id":3}])").adapter;
  EXPECT_EQ(placed.index, 3);
  EXPECT_EQ(placed.scale, std::nullopt);
  const AdapterWish none = GoodChat(R"("lora":[{"id":0,"scale":0.0}])").adapter;
  EXPECT_TRUE(none.given);
  EXPECT_EQ(none.index, -1);
  ExpectChatRefused(R"("lora":[{"id":0},{"id":1}])", "lora", "names two adapters");
  ExpectChatRefused(R"("lora":[{"scale":1}])", "lora[0].id", "the place of an adapter");
  ExpectChatRefused(R"("lora":{"id":0,"name":"a"})", "lora.id", "the place of an adapter");
  ExpectChatRefused(R"("lora":{"id":0,"weight":2})", "lora.weight", "not a field");
}

TEST(OpenAi, WhatClientsSendByDefaultIsTaken) {
  const ApiRequest request =
      GoodChat(R"("tool_choice":"auto","tools":[],"parallel_tool_calls":true,"metadata":{"a":"b"},)"
               R"("store":false,"service_tier":"auto","user":"u","reasoning_effort":"low",)"
               R"("max_tokens":-1,"top_k":-1)");
  EXPECT_TRUE(request.ignored.empty());
  EXPECT_EQ(request.stop.max_tokens, 0);
  EXPECT_EQ(request.sampling.top_k, 0);
  const Result<ApiRequest> turns = ChatDoor().read(
      R"({"messages":[{"role":"user","content":"a","name":"b"},)"
      R"({"role":"assistant","content":null,"tool_calls":[]},{"role":"user","content":"c"}]})",
      {.strict_fields = true});
  ASSERT_TRUE(turns.ok()) << turns.error().message;
  EXPECT_EQ(turns->chat.messages[1].content, "");
  ExpectChatRefused(R"("max_tokens":0)", "max_tokens", "from 1");
}

TEST(OpenAi, ThoughtsHaveABudget) {
  for (const char* name :
       {"thinking_budget_tokens", "reasoning_budget_tokens", "thinking_token_budget"}) {
    EXPECT_EQ(GoodChat(fmt::format(R"("{}":30)", name)).budget.tokens, 30);
  }
  const ApiRequest request =
      GoodChat(R"("thinking_budget_tokens":0,"reasoning_budget_message":"Enough.")");
  EXPECT_EQ(request.budget.tokens, 0);
  EXPECT_EQ(request.budget.message, "Enough.");
  const Result<ApiRequest> plain = ChatDoor().read(
      R"({"messages":[{"role":"user","content":"a"}]})", {.budget = {.tokens = 5, .message = "M"}});
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(plain->budget.tokens, 5);
  EXPECT_EQ(plain->budget.message, "M");
  ExpectChatRefused(R"("thinking_budget_tokens":-2)", "thinking_budget_tokens", "from -1");
  ExpectChatRefused(R"("thinking_budget_tokens":1,"thinking_token_budget":2)",
                    "thinking_token_budget", "differ");
}

constexpr char kOpenAiTools[] =
    R"("tools":[{"type":"function","function":{"name":"weather","description":"Of a place.",)"
    R"("parameters":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},)"
    R"("required":["b"]},"strict":true}},{"type":"function","function":{"name":"now"}}])";

std::string WithTools(const std::string& more) { return kOpenAiTools + ("," + more); }

TEST(OpenAi, ToolsGoToTheTemplateAsTheyCame) {
  const ApiRequest request = GoodChat(kOpenAiTools);
  EXPECT_THAT(request.chat.tools, HasSubstr(R"("properties":{"b":{"type":"string"},"a":)"));
  ASSERT_EQ(request.tools.size(), 2U);
  EXPECT_EQ(request.tools[0].name, "weather");
  EXPECT_TRUE(request.tools[0].strict);
  EXPECT_THAT(request.tools[0].parameters, HasSubstr(R"("b":{"type":"string"},"a")"));
  // One that says nothing of its parameters has none.
  EXPECT_EQ(request.tools[1].parameters,
            R"({"type":"object","properties":{},"additionalProperties":false})");
  EXPECT_THAT(request.chat.tools, HasSubstr(R"("name":"now","parameters":{"type":"object",)"));
  EXPECT_FALSE(request.must_call || request.one_call);
}

TEST(OpenAi, WhichToolsMayBeCalled) {
  const ApiRequest none = GoodChat(WithTools(R"("tool_choice":"none")"));
  EXPECT_TRUE(none.tools.empty() && none.chat.tools.empty());
  EXPECT_TRUE(GoodChat(WithTools(R"("tool_choice":"required")")).must_call);
  EXPECT_TRUE(GoodChat(WithTools(R"("parallel_tool_calls":false)")).one_call);
  const ApiRequest named =
      GoodChat(WithTools(R"("tool_choice":{"type":"function","function":{"name":"now"}})"));
  EXPECT_TRUE(named.must_call);
  ASSERT_EQ(named.tools.size(), 1U);
  EXPECT_EQ(named.tools[0].name, "now");
  ExpectChatRefused(WithTools(R"("tool_choice":{"type":"function","function":{"name":"x"}})"),
                    "tool_choice", "'x', which is none of the functions in 'tools'");
  ExpectChatRefused(WithTools(R"("tool_choice":"sometimes")"), "tool_choice", "auto, none");
  ExpectChatRefused(R"("tool_choice":"required")", "tool_choice", "needs 'tools'");
}

TEST(OpenAi, ToolsThatAreNoneAreRefused) {
  ExpectChatRefused(R"("tools":[{"type":"function"}])", "tools[0].type", "\"function\"");
  ExpectChatRefused(R"("tools":[{"type":"function","function":{"name":"a b"}}])",
                    "tools[0].function.name", "must be 1 to 256");
  ExpectChatRefused(R"("tools":[{"type":"function","function":{"name":"a","parameters":[]}}])",
                    "tools[0].function.parameters", "a JSON Schema");
  ExpectChatRefused(R"("tools":[{"type":"function","function":{"name":"a"}},)"
                    R"({"type":"function","function":{"name":"a"}}])",
                    "tools[1].function.name", "two of the tools");
  ExpectChatRefused(R"("tools":{})", "tools", "an array");
}

TEST(OpenAi, CallsAndTheirAnswersAreTurns) {
  const ApiRequest request =
      MustRead(ChatDoor(),
               R"({"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":null,)"
               R"("reasoning_content":"Hm.","tool_calls":[{"id":"1","type":"function","function":)"
               R"({"name":"f","arguments":"{\"b\":1,\"a\":[]}"}},{"id":"2","type":"function",)"
               R"("function":{"name":"g","arguments":"no json"}}]},)"
               R"({"role":"tool","tool_call_id":"1","content":"x"}]})");
  const std::vector<ChatMessage>& turns = request.chat.messages;
  ASSERT_EQ(turns.size(), 3U);
  const Json call = Json::Parse(turns[1].more);
  EXPECT_EQ(call["reasoning_content"], "Hm.");
  // Templates read arguments as an object, with its members in their order.
  EXPECT_EQ(call["tool_calls"][0]["function"].dump(), R"({"name":"f","arguments":{"b":1,"a":[]}})");
  EXPECT_EQ(call["tool_calls"][1]["function"]["arguments"], "no json");
  EXPECT_EQ(turns[2].role, "tool");
  EXPECT_EQ(turns[2].content, "x");
  EXPECT_EQ(Json::Parse(turns[2].more)["name"], "f");
  ExpectRefused(ChatDoor(), R"({"messages":[{"role":"assistant","tool_calls":[{"id":"1"}]}]})",
                "messages[0].tool_calls[0].type", "\"function\"");
}

// An answer that thinks, speaks and calls twice.
std::vector<Burst> OpenAiCallingBursts() {
  using Kind = ChatPart::Kind;
  std::vector<Burst> bursts(3);
  bursts[0].parts = {{Kind::kReasoning, "Hm."}, {Kind::kContent, "See"}};
  bursts[1].parts = {{Kind::kCall, "f"}, {Kind::kArguments, "{\"a\":"}};
  bursts[2].parts = {{Kind::kArguments, "1}"}, {Kind::kCall, "g"}, {Kind::kArguments, "{}"}};
  bursts[2].ending = EndingBy(FinishReason::kEndOfSequence);
  return bursts;
}

std::string OpenAiAnswer(const ApiRequest& request, std::vector<Burst> bursts) {
  const auto writer = ChatDoor().writer(request, {.id = "chatcmpl-1", .model = "m"}, nullptr);
  std::string out;
  writer->Start({}, &out);
  for (Burst& burst : bursts) writer->Add(std::move(burst), &out);
  writer->End(&out);
  return out;
}

TEST(OpenAi, CallsInAWholeReply) {
  const Json reply = Json::Parse(OpenAiAnswer({}, OpenAiCallingBursts()));
  const Json& choice = reply["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  const Json& message = choice["message"];
  EXPECT_EQ(message["content"], "See");
  EXPECT_EQ(message["reasoning_content"], "Hm.");
  ASSERT_EQ(message["tool_calls"].size(), 2U);
  EXPECT_EQ(message["tool_calls"][0]["type"], "function");
  EXPECT_EQ(message["tool_calls"][0]["function"].dump(), R"({"name":"f","arguments":"{\"a\":1}"})");
  const std::string id = message["tool_calls"][0]["id"];
  EXPECT_EQ(id.size(), 9U);
  EXPECT_NE(message["tool_calls"][1]["id"], id);
}

TEST(OpenAi, CallsAsEventsComeToTheSame) {
  ApiRequest request;
  request.stream = true;
  Json calls = Json::array();
  std::string content;
  std::string reasoning;
  std::string finish;
  std::string stream = OpenAiAnswer(request, OpenAiCallingBursts());
  stream.resize(stream.find("data: [DONE]"));
  for (const NamedEvent& event : Events(stream)) {
    const Json& choice = event.data["choices"][0];
    if (choice["finish_reason"].is_string()) finish = choice["finish_reason"];
    const Json& delta = choice["delta"];
    content += delta.value("content", "");
    reasoning += delta.value("reasoning_content", "");
    for (const Json& call : delta.value("tool_calls", Json::array())) {
      if (call["index"] == calls.size())
        calls.push_back(call);
      else
        calls.back()["function"]["arguments"].text() +=
            call["function"]["arguments"].get<std::string>();
    }
  }
  const Json whole = Json::Parse(OpenAiAnswer({}, OpenAiCallingBursts()))["choices"][0];
  for (Json& call : calls) call.erase("index");
  EXPECT_EQ(calls, whole["message"]["tool_calls"]);
  EXPECT_EQ(content, whole["message"]["content"]);
  EXPECT_EQ(reasoning, whole["message"]["reasoning_content"]);
  EXPECT_EQ(finish, whole["finish_reason"]);
}

TEST(OpenAi, WrongValuesAreNamed) {
  ExpectChatRefused(R"("temperature":"hot")", "temperature", "must be a number");
  ExpectChatRefused(R"("temperature":-1)", "temperature", "from 0 to 100");
  ExpectChatRefused(R"("temperature":1e999)", "", "not valid JSON");
  ExpectChatRefused(R"("top_p":1e300)", "top_p", "must be a number");
  ExpectChatRefused(R"("top_k":1.5)", "top_k", "an integer");
  ExpectChatRefused(R"("n":0)", "n", "from 1 to 128");
  ExpectChatRefused(R"("n":18446744073709551615)", "n", "from 1 to 128");
  ExpectChatRefused(R"("max_tokens":1,"max_completion_tokens":2)", "max_tokens", "differ");
  ExpectChatRefused(R"("stop":[""])", "stop", "none of them empty");
  ExpectChatRefused(R"("stop_token_ids":[-1])", "stop_token_ids", "tokens");
  ExpectChatRefused(R"("logit_bias":{"a":1})", "logit_bias", "token ids");
  ExpectChatRefused(R"("top_logprobs":2)", "top_logprobs", "needs 'logprobs'");
  ExpectChatRefused(R"("stream_options":{})", "stream_options", "needs 'stream'");
  ExpectChatRefused(R"("speculation_trace":true)", "speculation_trace", "needs 'stream'");
  ExpectChatRefused(R"("speculative":{"mode":"fast"})", "speculative.mode", "choose one of ar");
  ExpectChatRefused(R"("speculative":{"mode":"sd","off":true})", "speculative.off", "contradicts");
  ExpectChatRefused(R"("speculative":{"fanout":[]})", "speculative.fanout", "integer");
  ExpectChatRefused(R"("speculative":7)", "speculative", "must be an object");
  ExpectRefused(ChatDoor(), R"({"messages":[]})", "messages", "at least one");
  ExpectRefused(ChatDoor(), R"({"messages":[{"role":"judge","content":"a"}]})", "messages[0].role",
                "system, developer, user, assistant or tool");
  ExpectRefused(ChatDoor(), R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
                "messages[0].content", "reads text only, and part 0 is 'image_url'");
  ExpectRefused(CompletionDoor(), R"({"prompt":{}})", "prompt", "must be a string");
  ExpectRefused(CompletionDoor(), R"({"prompt":["a","b"],"n":100})", "n", "more than 128");
  ExpectRefused(CompletionDoor(), R"({"prompt":"a","max_tokens":0,"echo":true})", "max_tokens",
                "0 beside 'echo' and 'logprobs'");
  ExpectRefused(CompletionDoor(), R"({"prompt":"a","max_tokens":0,"logprobs":1})", "max_tokens",
                "0 beside 'echo' and 'logprobs'");
}

TEST(OpenAi, PromptsAreScoredWhereTheyAreEchoedWithLogprobs) {
  const auto read = [](std::string_view body) {
    Result<ApiRequest> request = CompletionDoor().read(body, {});
    EXPECT_TRUE(request.ok()) << (request.ok() ? "" : request.error().message);
    return std::move(request).value();
  };
  const ApiRequest alone = read(R"({"prompt":"a","max_tokens":0,"echo":true,"logprobs":0})");
  EXPECT_TRUE(alone.scores_prompts());
  EXPECT_TRUE(alone.prompt_only);
  const ApiRequest more = read(R"({"prompt":"a","max_tokens":1,"echo":true,"logprobs":1})");
  EXPECT_TRUE(more.scores_prompts());
  EXPECT_FALSE(more.prompt_only);
  EXPECT_FALSE(read(R"({"prompt":"a","echo":true})").scores_prompts());
  EXPECT_FALSE(read(R"({"prompt":"a","logprobs":1})").scores_prompts());
}

TEST(OpenAi, BodiesThatAreNoObjectAreRefused) {
  ExpectRefused(ChatDoor(), "", "", "empty");
  ExpectRefused(ChatDoor(), "[]", "", "must be a JSON object");
  ExpectRefused(ChatDoor(), "{\"a\":1,}", "", "goes wrong at byte 8");
  ExpectRefused(ChatDoor(), "{\"a\":\"\xff\"}", "", "not valid JSON");
  ExpectRefused(ChatDoor(), std::string(100000, '['), "", "deeper than 64");
}

TEST(OpenAi, EventsAreJsonWhateverTheText) {
  ApiRequest request;
  request.stream = true;
  request.include_usage = true;
  const auto writer = ChatDoor().writer(request, {.id = "x", .model = "a \"model\""}, nullptr);
  std::string events;
  writer->Start({}, &events);
  writer->Add({.parts = {{ChatPart::Kind::kContent, "\"\\\n\t\x01\x7f é 🙂"}}}, &events);
  writer->Add({.ending = Ending{FinishReason::kStopString, {.output_tokens = 3}}}, &events);
  writer->End(&events);
  std::vector<Json> parsed;
  for (std::size_t at = 0; at < events.size();) {
    const std::size_t end = events.find("\n\n", at);
    const std::string event = events.substr(at, end - at);
    ASSERT_TRUE(event.starts_with("data: "));
    if (event != "data: [DONE]") parsed.push_back(Json::Parse(event.substr(6)));
    at = end + 2;
  }
  ASSERT_EQ(parsed.size(), 4U);
  EXPECT_EQ(parsed[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(parsed[1]["choices"][0]["delta"]["content"], "\"\\\n\t\x01\x7f é 🙂");
  EXPECT_EQ(parsed[1]["model"], "a \"model\"");
  EXPECT_TRUE(parsed[1]["usage"].is_null());
  EXPECT_EQ(parsed[2]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(parsed[3]["usage"]["completion_tokens"], 3);
  EXPECT_THAT(events, ::testing::EndsWith("data: [DONE]\n\n"));
}

}  // namespace
}  // namespace foretoken::server
