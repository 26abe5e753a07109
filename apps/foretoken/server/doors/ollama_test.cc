#include "apps/foretoken/server/doors/doors.h"

#include "apps/foretoken/server/doors/door_testing.h"

namespace foretoken::server {
namespace {

using ::testing::ElementsAre;

constexpr char kChat[] = R"({"messages":[{"role":"user","content":"Hi"}])";

TEST(OllamaDoor, ReadsWhatItsClientsSend) {
  const ApiRequest request = MustRead(
      OllamaChatDoor(),
      std::string(kChat) +
          R"(,"options":{"temperature":0.5,"seed":4,"num_predict":9,"top_k":5,"top_p":0.9,)"
          R"("min_p":0.1,"repeat_penalty":1.2,"repeat_last_n":-1,"stop":["x"],"num_ctx":4096,)"
          R"("mirostat":0,"unheard":1},"format":"json","keep_alive":"5m","think":false,"tools":[]})");
  EXPECT_TRUE(request.stream);
  EXPECT_FLOAT_EQ(request.sampling.temperature, 0.5F);
  EXPECT_EQ(request.sampling.seed, 4U);
  EXPECT_EQ(request.sampling.top_k, 5);
  EXPECT_FLOAT_EQ(request.sampling.repetition_penalty, 1.2F);
  EXPECT_EQ(request.stop.max_tokens, 9);
  EXPECT_THAT(request.stop.stop_strings, ElementsAre("x"));
  EXPECT_EQ(request.format.field, "format");
  EXPECT_THAT(request.ignored, ElementsAre("options.unheard"));
}

TEST(OllamaDoor, TheLastTurnOfTheAssistantsIsGoneOnWith) {
  const auto goes_on = [](const std::string& more) {
    return MustRead(OllamaChatDoor(), R"({"messages":[{"role":"user","content":"Hi"})" + more + "}")
        .chat.continues_last;
  };
  EXPECT_FALSE(goes_on("]"));
  EXPECT_TRUE(goes_on(R"(,{"role":"assistant","content":"Once"}])"));
  EXPECT_FALSE(goes_on(R"(,{"role":"assistant","content":"Once"}],"add_generation_prompt":true)"));
  EXPECT_FALSE(goes_on(R"(,{"role":"assistant","content":"","tool_calls":[{"function":)"
                       R"({"name":"f","arguments":{}}}]}])"));
}

TEST(OllamaDoor, ASeedOfMinusOneIsARandomOne) {
  const auto seeded = [](const std::string& seed) {
    return MustRead(OllamaChatDoor(), std::string(kChat) + R"(,"options":{"seed":)" + seed + "}}")
        .seeded;
  };
  EXPECT_FALSE(seeded("-1"));
  EXPECT_TRUE(seeded("0"));
}

TEST(OllamaDoor, APromptIsAChatUnlessItIsRaw) {
  const ApiRequest chat =
      MustRead(OllamaGenerateDoor(), R"({"prompt":"Hi","system":"Be brief.","stream":false})");
  EXPECT_EQ(chat.kind, ApiKind::kChat);
  ASSERT_EQ(chat.chat.messages.size(), 2U);
  EXPECT_EQ(chat.chat.messages[0].role, "system");
  EXPECT_EQ(chat.chat.messages[1].content, "Hi");
  const ApiRequest raw = MustRead(OllamaGenerateDoor(), R"({"prompt":"Hi","raw":true})");
  EXPECT_EQ(raw.kind, ApiKind::kCompletion);
  EXPECT_TRUE(raw.parse_special);
  EXPECT_EQ(std::get<std::string>(raw.prompts.at(0)), "Hi");
}

TEST(OllamaDoor, RefusesWhatItCannotHonour) {
  const auto refused = [](const std::string& more, const std::string& field,
                          const std::string& saying) {
    ExpectRefused(OllamaChatDoor(), std::string(kChat) + "," + more + "}", field, saying);
  };
  refused(R"("options":{"mirostat":2})", "options.mirostat", "no such sampler");
  refused(R"("options":{"repeat_last_n":-2})", "options.repeat_last_n", "from -1");
  refused(R"("format":"yaml")", "format", "JSON Schema");
  refused(R"("format":"json","grammar":"root ::= \"a\"")", "format", "contradicts");
  refused(R"("think":3)", "think", "string");
  refused(R"("tools":[{"type":"function"}])", "tools[0].type", "'function' beside it");
  ExpectRefused(OllamaChatDoor(), R"({"messages":[{"role":"user","content":"Hi","images":["x"]}]})",
                "messages[0].images", "text only");
  ExpectRefused(OllamaGenerateDoor(), R"({"prompt":""})", "prompt", "not empty");
  ExpectRefused(OllamaGenerateDoor(), R"({"prompt":"a","raw":true,"system":"b"})", "system", "raw");
  ExpectRefused(OllamaGenerateDoor(), R"({"prompt":"a","suffix":"b","system":"c"})", "system",
                "suffix");
}

TEST(OllamaDoor, AStreamIsLines) {
  const ApiRequest request = MustRead(OllamaChatDoor(), std::string(kChat) + "}");
  const std::string out = Answer(OllamaChatDoor(), request, EndingBy(FinishReason::kMaxTokens));
  std::vector<Json> lines;
  for (std::size_t at = 0; at < out.size(); at = out.find('\n', at) + 1) {
    lines.push_back(Json::Parse(out.substr(at, out.find('\n', at) - at)));
  }
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["message"]["content"], "Hel");
  EXPECT_EQ(lines[1]["message"]["content"], "lo\n");
  EXPECT_EQ(lines[0]["done"], false);
  EXPECT_EQ(lines[0]["created_at"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(lines[2]["message"]["content"], "");
  EXPECT_EQ(lines[2]["done"], true);
  EXPECT_EQ(lines[2]["done_reason"], "length");
  EXPECT_EQ(lines[2]["total_duration"], 9'000);  // Nanoseconds.
  EXPECT_EQ(lines[2]["prompt_eval_duration"], 2'000);
  EXPECT_EQ(lines[2]["eval_duration"], 7'000);
  EXPECT_EQ(lines[2]["prompt_eval_count"], 7);
  EXPECT_EQ(lines[2]["eval_count"], 3);
}

TEST(OllamaDoor, AWholeReply) {
  const ApiRequest request = MustRead(OllamaGenerateDoor(), R"({"prompt":"Hi","stream":false})");
  const auto reply =
      Json::Parse(Answer(OllamaGenerateDoor(), request, EndingBy(FinishReason::kEndOfSequence)));
  EXPECT_EQ(reply["response"], "Hello\n");
  EXPECT_EQ(reply["done_reason"], "stop");
  EXPECT_FALSE(reply.contains("message"));
}

TEST(OllamaDoor, NamesAndErrors) {
  EXPECT_EQ(OllamaChatDoor().error({.message = "no"}), R"({"error":"no"})");
  EXPECT_EQ(WithoutTag("demo:latest"), "demo");
  EXPECT_EQ(WithoutTag("demo:7b"), "demo:7b");
}

TEST(OllamaDoor, SaysInOllamasWordsThatAPromptIsTooLong) {
  const PromptTooLong prompt{.tokens = 9000, .most = 511, .context = 512};
  EXPECT_EQ(OllamaChatDoor().error(Refusal(prompt, "messages")),
            R"({"error":"prompt too long; exceeded max context length by 8489 tokens: )"
            R"(it has 9000, and 511 are allowed"})");
}

// All options as Ollama's clients send them that send every one, with Ollama's defaults.
TEST(OllamaDoor, TakesEveryOptionAtItsDefault) {
  const ApiRequest request = MustRead(
      OllamaChatDoor(),
      std::string(kChat) +
          R"(,"options":{"num_keep":4,"seed":0,"num_predict":-1,"top_k":40,"top_p":0.9,"min_p":0,)"
          R"("tfs_z":1,"typical_p":1,"repeat_last_n":64,"temperature":0.8,"repeat_penalty":1.1,)"
          R"("presence_penalty":0,"frequency_penalty":0,"mirostat":0,"mirostat_tau":5,)"
          R"("mirostat_eta":0.1,"penalize_newline":true,"stop":[],"numa":false,"num_ctx":2048,)"
          R"("num_batch":512,"num_gpu":-1,"main_gpu":0,"low_vram":false,"f16_kv":true,)"
          R"("vocab_only":false,"use_mmap":true,"use_mlock":false,"num_thread":0}})");
  EXPECT_THAT(request.ignored, ElementsAre());
  EXPECT_FLOAT_EQ(request.sampling.repetition_penalty, 1.1F);
  EXPECT_EQ(request.sampling.penalty_window, 64);
  EXPECT_EQ(request.stop.max_tokens, 0);
}

TEST(OllamaDoor, PenaltiesLookAtTheLatestTokens) {
  const auto window = [](const std::string& options, const ApiDefaults& defaults = {}) {
    const std::string body = std::string(kChat) + R"(,"options":{)" + options + "}}";
    const auto request = OllamaChatDoor().read(body, defaults);
    EXPECT_TRUE(request.ok()) << body;
    return request.ok() ? request->sampling.penalty_window : -9;
  };
  EXPECT_EQ(window(R"("repeat_penalty":1.2)"), 64);
  EXPECT_EQ(window(R"("presence_penalty":0.5)"), 64);
  EXPECT_EQ(window(R"("repeat_penalty":1.2,"repeat_last_n":9)"), 9);
  EXPECT_EQ(window(R"("repeat_penalty":1.2,"repeat_last_n":0)"), 0);
  EXPECT_EQ(window(R"("repeat_penalty":1.2,"repeat_last_n":-1)"), -1);
  // This server's own name, and its own option, are about all of the text.
  EXPECT_EQ(window(R"("repetition_penalty":1.2)"), -1);
  EXPECT_EQ(window("", {.sampling = {.repetition_penalty = 1.1F}}), -1);
}

TEST(OllamaDoor, APromptWithASuffixIsAGap) {
  const ApiRequest request =
      MustRead(OllamaGenerateDoor(), R"({"prompt":"def f(","suffix":"return 1"})");
  EXPECT_EQ(request.kind, ApiKind::kCompletion);
  const auto& gap = std::get<ApiGap>(request.prompts.at(0));
  EXPECT_EQ(gap.before, "def f(");
  EXPECT_EQ(gap.behind, "return 1");
  EXPECT_EQ(MustRead(OllamaGenerateDoor(), R"({"prompt":"Hi","suffix":""})").kind, ApiKind::kChat);
}

}  // namespace
}  // namespace foretoken::server
