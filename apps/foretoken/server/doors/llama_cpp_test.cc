#include "apps/foretoken/server/doors/doors.h"

#include "apps/foretoken/server/doors/door_testing.h"

namespace foretoken::server {
namespace {

using ::testing::ElementsAre;

TEST(LlamaCppDoor, ReadsWhatItsClientsSend) {
  const ApiRequest request = MustRead(
      LlamaCppDoor(),
      R"({"prompt":["a",[1,2]],"n_predict":9,"temperature":0.5,"repeat_penalty":1.2,"seed":-1,)"
      R"("stop":["x"],"typical_p":1.0,"xtc_probability":0,"dry_base":1.75,"cache_prompt":false,)"
      R"("id_slot":0,"n_probs":2,"grammar":"root ::= \"a\""})");
  EXPECT_EQ(request.kind, ApiKind::kCompletion);
  EXPECT_EQ(request.choices(), 2);
  EXPECT_THAT(std::get<std::vector<Token>>(request.prompts[1]), ElementsAre(1, 2));
  EXPECT_TRUE(request.parse_special);
  EXPECT_TRUE(request.return_prompts);
  EXPECT_FALSE(request.scores_prompts());
  EXPECT_EQ(request.stop.max_tokens, 9);
  EXPECT_FLOAT_EQ(request.sampling.repetition_penalty, 1.2F);
  EXPECT_EQ(request.sampling.top_logprobs, 2);
  EXPECT_FALSE(request.seeded);
  EXPECT_EQ(request.format.field, "grammar");
  EXPECT_THAT(request.ignored, ElementsAre());
  EXPECT_EQ(MustRead(LlamaCppDoor(), R"({"prompt":"a"})").stop.max_tokens, 0);
}

TEST(LlamaCppDoor, RefusesWhatItCannotHonour) {
  const auto refused = [](const std::string& more, const std::string& field,
                          const std::string& saying) {
    ExpectRefused(LlamaCppDoor(), R"({"prompt":"a",)" + more + "}", field, saying);
  };
  ExpectRefused(LlamaCppDoor(), "{}", "prompt", "a string");
  refused(R"("n_predict":0)", "n_predict", "from 1");
  refused(R"("dry_multiplier":0.8)", "dry_multiplier", "must be 0: this server has no such");
  refused(R"("post_sampling_probs":true)", "post_sampling_probs", "before sampling");
  refused(R"("json_schema":[])", "json_schema", "an object");
  refused(R"("json_schema":{"type":"object"},"grammar":"root ::= \"a\"")", "grammar",
          "contradicts");
}

TEST(LlamaCppDoor, AWholeReply) {
  const ApiRequest request =
      MustRead(LlamaCppDoor(), R"({"prompt":"a","stop":["x","END"],"return_tokens":true})");
  const auto reply =
      Json::Parse(Answer(LlamaCppDoor(), request, EndingBy(FinishReason::kStopString, 1)));
  EXPECT_EQ(reply["content"], "Hello\n");
  EXPECT_EQ(reply["tokens"], Json::array({5, 5}));
  EXPECT_EQ(reply["stop"], true);
  EXPECT_EQ(reply["stop_type"], "word");
  EXPECT_EQ(reply["stopping_word"], "END");
  EXPECT_EQ(reply["tokens_predicted"], 3);
  EXPECT_EQ(reply["tokens_evaluated"], 7);
  EXPECT_EQ(reply["prompt"], "prompt");
  EXPECT_EQ(reply["has_new_line"], true);
  EXPECT_EQ(reply["generation_settings"]["n_predict"], -1);
  EXPECT_EQ(reply["timings"]["predicted_n"], 3);
}

TEST(LlamaCppDoor, SeveralPromptsAreAnsweredByAnArray) {
  const ApiRequest request = MustRead(LlamaCppDoor(), R"({"prompt":["a","b"]})");
  const auto reply =
      Json::Parse(Answer(LlamaCppDoor(), request, EndingBy(FinishReason::kMaxTokens)));
  ASSERT_EQ(reply.size(), 2U);
  EXPECT_EQ(reply[0]["stop_type"], "limit");
  EXPECT_EQ(reply[0]["tokens"], Json::array());
  EXPECT_EQ(reply[1]["index"], 1);
}

TEST(LlamaCppDoor, AStreamEndsWithAnEmptyPart) {
  const ApiRequest request = MustRead(LlamaCppDoor(), R"({"prompt":"a","stream":true})");
  const auto events =
      Events(Answer(LlamaCppDoor(), request, EndingBy(FinishReason::kEndOfSequence)));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].data["content"], "Hel");
  EXPECT_EQ(events[0].data["tokens"], Json::array({5}));
  EXPECT_EQ(events[1].data["stop"], false);
  EXPECT_EQ(events[2].data["content"], "");
  EXPECT_EQ(events[2].data["stop"], true);
  EXPECT_EQ(events[2].data["stop_type"], "eos");
  EXPECT_EQ(events[2].data["has_new_line"], true);
}

TEST(LlamaCppDoor, ReadsGaps) {
  const ApiRequest request = MustRead(
      LlamaCppInfillDoor(),
      R"({"input_prefix":"def f(","input_suffix":"return 1","prompt":"a, ","n_predict":9,)"
      R"("input_extra":[{"filename":"a.py","text":"import b\n"},{"text":"c"}],"stream":true})");
  EXPECT_EQ(request.kind, ApiKind::kCompletion);
  EXPECT_EQ(request.choices(), 1);
  EXPECT_TRUE(request.stream);
  EXPECT_EQ(request.stop.max_tokens, 9);
  const auto& gap = std::get<ApiGap>(request.prompts.at(0));
  EXPECT_EQ(gap.before, "def f(a, ");
  EXPECT_EQ(gap.behind, "return 1");
  ASSERT_EQ(gap.files.size(), 2U);
  EXPECT_EQ(gap.files[0].name, "a.py");
  EXPECT_EQ(gap.files[1].text, "c");
  ExpectRefused(LlamaCppInfillDoor(), R"({"input_prefix":"a"})", "input_suffix", "behind the gap");
  ExpectRefused(LlamaCppInfillDoor(), R"({"input_prefix":"a","input_suffix":"b","input_extra":{}})",
                "input_extra", "an array");
  ExpectRefused(LlamaCppInfillDoor(),
                R"({"input_prefix":"a","input_suffix":"b","input_extra":[{}]})",
                "input_extra[0].text", "a string");
}

TEST(LlamaCppDoor, Errors) {
  EXPECT_EQ(LlamaCppDoor().error({.status = 503, .message = "soon"}),
            R"({"error":{"code":503,"message":"soon","type":"unavailable_error"}})");
  const PromptTooLong prompt{.tokens = 9000, .most = 511, .context = 512};
  EXPECT_EQ(LlamaCppDoor().error(Refusal(prompt, "prompt")),
            R"({"error":{"code":400,"message":"the request (9000 tokens) exceeds the available )"
            R"(context size (512 tokens, of which a prompt may have 511), try increasing it",)"
            R"("type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":512}})");
}

}  // namespace
}  // namespace foretoken::server
