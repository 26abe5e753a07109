#include "apps/foretoken/server/doors/doors.h"

#include "apps/foretoken/server/doors/door_testing.h"

namespace foretoken::server {
namespace {

using ::testing::ElementsAre;

// All that the door sends where the first text becomes (0.5, -0.25) and each next one its negative.
std::string EmbeddingsAnswer(const Door& door, const std::string& body) {
  const ApiRequest request = MustRead(door, body);
  const auto writer = door.writer(request, {.id = "", .created = 1, .model = "m"}, nullptr);
  std::string out;
  writer->Start({}, &out);
  // The last text ends first.
  for (int i = request.choices() - 1; i >= 0; --i) {
    const float sign = i % 2 == 0 ? 1 : -1;
    writer->Add({.choice = i,
                 .embedding = {sign * 0.5F, sign * -0.25F},
                 .ending = EndingBy(FinishReason::kMaxTokens)},
                &out);
  }
  EXPECT_EQ(out, "");
  writer->End(&out);
  return out;
}

TEST(EmbeddingsDoor, ReadsWhatItsClientsSend) {
  const ApiRequest request =
      MustRead(EmbeddingsDoor(), R"({"model":"m","input":["a",[1,2]],"encoding_format":"base64",)"
                                 R"("dimensions":4,"user":"u","pooling":"last"})");
  EXPECT_EQ(request.choices(), 2);
  EXPECT_THAT(std::get<std::vector<Token>>(request.prompts[1]), ElementsAre(1, 2));
  EXPECT_TRUE(request.prompt_only);
  EXPECT_EQ(request.stop.max_tokens, 0);
  ASSERT_TRUE(request.embedding.has_value());
  EXPECT_TRUE(request.embedding->base64);
  EXPECT_EQ(request.embedding->pooling, Pooling::kLast);
  EXPECT_EQ(request.embedding->dimensions, 4);
  EXPECT_THAT(request.ignored, ElementsAre());
  const ApiRequest plain = MustRead(EmbeddingsDoor(), R"({"input":[3,4]})");
  EXPECT_EQ(plain.choices(), 1);
  EXPECT_FALSE(plain.embedding->base64);
  EXPECT_EQ(plain.embedding->pooling, Pooling::kMean);
}

TEST(EmbeddingsDoor, RefusesWhatItCannotHonour) {
  const auto refused = [](const std::string& more, const std::string& field,
                          const std::string& saying) {
    ExpectRefused(EmbeddingsDoor(), "{" + more + "}", field, saying);
  };
  refused("", "input", "'input' must be a string, an array of tokens");
  refused(R"("input":[])", "input", "an array of tokens");
  refused(R"("input":"")", "input", "not empty");
  refused(R"("input":["a",""])", "input", "not empty");
  refused(R"("input":["a",3])", "input", "an array of tokens");
  refused(R"("input":"a","encoding_format":"hex")", "encoding_format", "float or base64");
  refused(R"("input":"a","dimensions":0)", "dimensions", "from 1");
  refused(R"("input":"a","pooling":"max")", "pooling", "mean or last");
  ExpectRefused(OllamaEmbeddingsDoor(), R"({"prompt":["a","b"]})", "prompt", "one text");
  ExpectRefused(LlamaCppEmbeddingDoor(), R"({"content":"a","embd_normalize":0})", "embd_normalize",
                "length 1");
}

TEST(EmbeddingsDoor, Replies) {
  EXPECT_EQ(EmbeddingsAnswer(EmbeddingsDoor(), R"({"input":["a","b"]})"),
            R"({"object":"list","data":[)"
            R"({"object":"embedding","index":0,"embedding":[0.5,-0.25]},)"
            R"({"object":"embedding","index":1,"embedding":[-0.5,0.25]}],)"
            R"("model":"m","usage":{"prompt_tokens":14,"total_tokens":14}})");
  // 00 00 00 3f, 00 00 80 be.
  EXPECT_EQ(
      Json::Parse(EmbeddingsAnswer(
          EmbeddingsDoor(), R"({"input":"a","encoding_format":"base64"})"))["data"][0]["embedding"],
      "AAAAPwAAgL4=");
  EXPECT_EQ(EmbeddingsAnswer(OllamaEmbedDoor(), R"({"input":["a","b"]})"),
            R"({"model":"m","embeddings":[[0.5,-0.25],[-0.5,0.25]],"total_duration":9000,)"
            R"("load_duration":0,"prompt_eval_count":14})");
  EXPECT_EQ(EmbeddingsAnswer(OllamaEmbeddingsDoor(), R"({"prompt":"a"})"),
            R"({"embedding":[0.5,-0.25]})");
  EXPECT_EQ(EmbeddingsAnswer(LlamaCppEmbeddingDoor(), R"({"content":["a","b"]})"),
            R"([{"index":0,"embedding":[[0.5,-0.25]]},{"index":1,"embedding":[[-0.5,0.25]]}])");
}

TEST(EmbeddingsDoor, Base64OfEveryLength) {
  EXPECT_EQ(Base64Floats({}), "");
  EXPECT_EQ(Base64Floats(std::vector<float>{1}), "AACAPw==");
  EXPECT_EQ(Base64Floats(std::vector<float>{1, 2}), "AACAPwAAAEA=");
  EXPECT_EQ(Base64Floats(std::vector<float>{1, 2, 4}), "AACAPwAAAEAAAIBA");
}

}  // namespace
}  // namespace foretoken::server
