#include "apps/foretoken/server/doors/ollama_models.h"

#include "apps/foretoken/server/doors/door_testing.h"
#include "apps/foretoken/server/doors/doors.h"

namespace foretoken::server {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(OllamaModels, Names) {
  EXPECT_EQ(ReadOllamaModel(R"({"name":"demo"})", {})->model, "demo");
  EXPECT_EQ(ReadOllamaModel(R"({"model":"demo","verbose":true})", {})->model, "demo");
  EXPECT_TRUE(ReadOllamaModel(R"({"model":"demo","insecure":false})", {})->stream);
  EXPECT_FALSE(ReadOllamaModel(R"({"model":"demo","stream":false})", {})->stream);
  EXPECT_FALSE(ReadOllamaModel("{}", {}).ok());
}

TEST(OllamaModels, Durations) {
  EXPECT_EQ(ParseOllamaDuration("5m"), minutes(5));
  EXPECT_EQ(ParseOllamaDuration("1h30m"), minutes(90));
  EXPECT_EQ(ParseOllamaDuration("1.5s"), std::chrono::milliseconds(1500));
  EXPECT_EQ(ParseOllamaDuration("250ms"), std::chrono::milliseconds(250));
  EXPECT_EQ(ParseOllamaDuration("0"), nanoseconds(0));
  EXPECT_EQ(ParseOllamaDuration("300"), seconds(300));
  EXPECT_EQ(ParseOllamaDuration("-1"), nanoseconds::max());
  EXPECT_EQ(ParseOllamaDuration("-1m"), nanoseconds::max());
  EXPECT_EQ(ParseOllamaDuration("10000000h"), nanoseconds::max());
  for (const char* bad : {"", "-", "m", "5 m", "5x", "5m3", "1.2.3s", "nan", "five"}) {
    EXPECT_EQ(ParseOllamaDuration(bad), std::nullopt) << bad;
  }
}

TEST(OllamaModels, HowLongAModelStays) {
  const auto read = [](const std::string& body) {
    const Result<OllamaKeeping> keeping = ReadOllamaKeeping(body);
    EXPECT_TRUE(keeping.ok()) << body;
    return keeping.ok() ? *keeping : OllamaKeeping{};
  };
  const OllamaKeeping chat =
      read(R"({"messages":[{"role":"user","content":"Hi"}],"keep_alive":"10m"})");
  EXPECT_FALSE(chat.asks_nothing);
  EXPECT_EQ(chat.keep, minutes(10));
  EXPECT_EQ(read(R"({"prompt":"Hi"})").keep, std::nullopt);
  EXPECT_EQ(read(R"({"prompt":"Hi","keep_alive":30})").keep, seconds(30));
  EXPECT_EQ(read(R"({"prompt":"Hi","keep_alive":-1})").keep, nanoseconds::max());
  EXPECT_FALSE(read(R"({"prompt":"Hi","keep_alive":0})").unloads());
  for (const char* nothing : {R"({"model":"m"})", R"({"prompt":""})", R"({"messages":[]})",
                              R"({"messages":null,"keep_alive":null})", R"({"input":[]})"}) {
    EXPECT_TRUE(read(nothing).asks_nothing) << nothing;
    EXPECT_FALSE(read(nothing).unloads()) << nothing;
  }
  EXPECT_TRUE(read(R"({"model":"m","keep_alive":0})").unloads());
  EXPECT_TRUE(read(R"({"messages":[],"keep_alive":"0s"})").unloads());
  // What is said deeper is not about the model.
  EXPECT_EQ(read(R"({"messages":[{"keep_alive":0}],"options":{"keep_alive":0}})").keep,
            std::nullopt);
  EXPECT_FALSE(read(R"({"input":["a"]})").asks_nothing);
  EXPECT_FALSE(read(R"({"prompt":"","suffix":"b"})").asks_nothing);
  EXPECT_FALSE(read("nope").asks_nothing);
  EXPECT_FALSE(read("[1]").asks_nothing);
  for (const char* bad : {R"("soon")", "true", "{}", "[5]"}) {
    const auto keeping =
        ReadOllamaKeeping(std::string(R"({"prompt":"Hi","keep_alive":)") + bad + "}");
    ASSERT_FALSE(keeping.ok()) << bad;
    EXPECT_EQ(keeping.error().field, "keep_alive");
  }
}

TEST(OllamaModels, WhoAsksNothingIsAnsweredInTheFormOfTheDoor) {
  constexpr std::int64_t kNow = 1'700'000'000;
  const Json chat = OllamaNothingAsked(OllamaChatDoor(), "m", "load", kNow);
  EXPECT_EQ(chat["model"], "m");
  EXPECT_EQ(chat["created_at"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(chat["message"]["content"], "");
  EXPECT_EQ(chat["done"], true);
  EXPECT_EQ(chat["done_reason"], "load");
  const Json text = OllamaNothingAsked(OllamaGenerateDoor(), "m", "unload", kNow);
  EXPECT_EQ(text["response"], "");
  EXPECT_EQ(text["done_reason"], "unload");
  EXPECT_EQ(Dump(OllamaNothingAsked(OllamaEmbedDoor(), "m", "load", kNow)),
            R"({"model":"m","embeddings":[]})");
  EXPECT_EQ(Dump(OllamaNothingAsked(OllamaEmbeddingsDoor(), "m", "load", kNow)),
            R"({"embedding":[]})");
}

}  // namespace
}  // namespace foretoken::server
