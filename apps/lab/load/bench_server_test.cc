#include "apps/lab/load/bench_server.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "apps/lab/load/bench_server_stream.h"
#include "apps/lab/load/fake_server_testing.h"
#include "json/json.h"

namespace foretoken {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::int64_t kMs = 1'000'000;

std::vector<std::string> EventsOf(std::string_view bytes, std::size_t piece) {
  std::vector<std::string> events;
  SseReader reader;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.Feed(bytes.substr(at, piece), [&](std::string_view data) { events.emplace_back(data); });
  }
  return events;
}

TEST(SseReader, FindsEventsHoweverTheBytesArrive) {
  const std::string_view bytes =
      ": hello\r\ndata: one\r\n\r\nevent: message\ndata:two\ndata: lines\n\n\n\ndata: unfinished";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    EXPECT_THAT(EventsOf(bytes, piece), ElementsAre("one", "two\nlines")) << piece;
  }
}

TEST(LoadRecord, ReadsChatAndTextChunks) {
  LoadRecord stream;
  stream.OnEvent(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})", 1);
  stream.OnEvent(R"({"choices":[{"delta":{"content":"a b"},"finish_reason":null}]})", 2);
  stream.OnEvent(R"({"choices":[{"text":" c","finish_reason":"length"}]})", 5);
  stream.OnEvent(R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,
                     "draft_n":4,"draft_n_accepted":1}})",
                 6);
  EXPECT_TRUE(stream.finished);
  EXPECT_FALSE(stream.done);
  stream.OnEvent("[DONE]", 7);
  EXPECT_TRUE(stream.done);
  EXPECT_EQ(stream.text, "a b c");
  EXPECT_THAT(stream.chunk_ns, ElementsAre(2, 5));
  EXPECT_EQ(stream.prompt_tokens, 7);
  EXPECT_EQ(stream.counted_tokens, 3);
  EXPECT_EQ(stream.drafted, 4);
  EXPECT_EQ(stream.draft_accepted, 1);
  EXPECT_EQ(stream.error, "");
}

TEST(LoadRecord, ReportsWhatTheServerSaysIsWrong) {
  LoadRecord stream;
  stream.OnEvent(R"({"error":{"message":"out of memory","code":500}})", 1);
  EXPECT_EQ(stream.message, "out of memory");
  for (const char* bad : {"{", "[1]", "17", R"({"choices":[{"delta":3}],"usage":"x"})"}) {
    LoadRecord other;
    other.OnEvent(bad, 1);
    EXPECT_EQ(other.chunk_ns.size(), 0U) << bad;
  }
}

TEST(ServerUrl, IsReadInTheFormsThatPeopleWrite) {
  const auto read = [](std::string_view url) {
    const Result<ServerAddress> address = ParseServerUrl(url);
    return address.ok() ? address->origin + " " + address->prefix : address.error().message;
  };
  EXPECT_EQ(read("http://127.0.0.1:8080"), "http://127.0.0.1:8080 ");
  EXPECT_EQ(read("localhost:80/"), "http://localhost:80 ");
  EXPECT_EQ(read("https://example.org/v1/"), "https://example.org ");
  EXPECT_EQ(read("http://[::1]:8080/llm/v1"), "http://[::1]:8080 /llm");
  for (const char* bad : {"", "http://", "ftp://host", ":80", "host:port", "host:", "a b", "u@h"}) {
    EXPECT_THAT(read(bad), HasSubstr("is not a server's address, like http://")) << bad;
  }
}

TEST(ArrivalTimes, ArePoissonWithTheRateAsked) {
  EXPECT_THAT(ArrivalTimes({.rate = 0}, 3), ElementsAre(0, 0, 0));
  const std::vector<std::int64_t> times = ArrivalTimes({.rate = 50, .seed = 3}, 4000);
  EXPECT_EQ(times.front(), 0);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_NEAR(static_cast<double>(times.back()) / 3999, 1e9 / 50, 0.05 * 1e9 / 50);
  // Gaps of a Poisson process exceed their mean with probability 1/e.
  int long_gaps = 0;
  for (std::size_t i = 1; i < times.size(); ++i) long_gaps += times[i] - times[i - 1] > 20 * kMs;
  EXPECT_NEAR(long_gaps / 3999.0, 0.368, 0.03);
  EXPECT_EQ(times, ArrivalTimes({.rate = 50, .seed = 3}, 4000));
  EXPECT_NE(times, ArrivalTimes({.rate = 50, .seed = 4}, 4000));
}

LoadRecord CompletedRecord(std::int64_t start, std::vector<std::int64_t> chunks, std::int64_t end) {
  LoadRecord record;
  record.start_ns = start * kMs;
  record.end_ns = end * kMs;
  for (const std::int64_t chunk : chunks) record.chunk_ns.push_back(chunk * kMs);
  return record;
}

TEST(LoadJson, HasTheFiguresOfItsDefinitions) {
  std::vector<LoadRecord> records = {CompletedRecord(0, {10, 20, 40}, 50),
                                     CompletedRecord(20, {50, 100}, 100)};
  records[0].counted_tokens = 6;
  records[0].prompt_tokens = 4;
  records[0].drafted = 5;
  records[0].draft_accepted = 4;
  LoadRecord refused;
  refused.start_ns = 30 * kMs;
  refused.end_ns = 200 * kMs;
  refused.error = "http 429";
  refused.message = "the queue is full";
  records.push_back(refused);

  const Json load = LoadJson({records}, {.ttft_ms = 20, .tpot_ms = 7});
  EXPECT_EQ(load["requests"], 3);
  EXPECT_EQ(load["completed"], 2);
  EXPECT_EQ(load["errors"], Json({{"http 429", {{"count", 1}, {"example", "the queue is full"}}}}));
  EXPECT_DOUBLE_EQ(load["duration_s"].get<double>(), 0.2);
  EXPECT_EQ(load["peak_in_flight"], 3);
  EXPECT_EQ(load["output_tokens"], 8);  // 6 as counted, 2 chunks.
  EXPECT_EQ(load["tokens_counted_by"], "chunks");
  EXPECT_DOUBLE_EQ(load["requests_per_s"].get<double>(), 10);
  EXPECT_DOUBLE_EQ(load["output_tokens_per_s"].get<double>(), 40);
  EXPECT_DOUBLE_EQ(load["total_tokens_per_s"].get<double>(), 60);
  EXPECT_DOUBLE_EQ(load["goodput_per_s"].get<double>(), 5);  // The second came after 30 ms.
  EXPECT_DOUBLE_EQ(load["ttft_ms"]["p50"].get<double>(), 20);
  EXPECT_DOUBLE_EQ(load["tpot_ms"]["mean"].get<double>(), (30.0 / 5 + 50.0 / 1) / 2);
  EXPECT_DOUBLE_EQ(load["itl_ms"]["mean"].get<double>(), (10 + 20 + 50) / 3.0);
  EXPECT_DOUBLE_EQ(load["e2e_ms"]["p99"].get<double>(), 79.7);
  EXPECT_DOUBLE_EQ(load["acceptance_rate"].get<double>(), 0.8);

  const std::string shown = RenderLoad(load);
  EXPECT_THAT(shown, HasSubstr("completed              2 of 3"));
  EXPECT_THAT(shown, HasSubstr("1 x http 429: the queue is full"));
}

TEST(LoadJson, OfSeveralRoundsCountsNoTimeBetweenThem) {
  LoadRecord refused = CompletedRecord(5'000, {}, 5'010);
  refused.error = "http 429";
  const Json load = LoadJson(
      {{CompletedRecord(0, {10, 20}, 20)}, {CompletedRecord(5'000, {5'010}, 5'080), refused}}, {});
  EXPECT_DOUBLE_EQ(load["duration_s"].get<double>(), 0.1);
  EXPECT_EQ(load["peak_in_flight"], 2);
  EXPECT_EQ(load["requests"], 3);
  EXPECT_EQ(load["completed"], 2);
  EXPECT_EQ(load["errors"]["http 429"]["count"], 1);
  EXPECT_DOUBLE_EQ(load["output_tokens_per_s"].get<double>(), 30);
}

TEST(LoadJson, OfNothingCompletedHasNoLatencies) {
  LoadRecord refused;
  refused.error = "connection";
  const Json load = LoadJson({{refused}}, {});
  EXPECT_EQ(load["completed"], 0);
  EXPECT_FALSE(load.contains("ttft_ms"));
  EXPECT_FALSE(load.contains("goodput_per_s"));
  EXPECT_THAT(RenderLoad(load), AllOf(HasSubstr("0 of 1"), Not(HasSubstr("TTFT"))));
}

TEST(LoadRequests, TakePromptsInTurnAndSayOnlyWhatWasAsked) {
  const std::vector<PromptSet> sets = {{"questions", {"Why?", "How?"}, false},
                                       {"openings", {"Once"}, true}};
  LoadContent content;
  content.model = "m";
  content.extra = {{"speculative", {{"mode", "sd"}}}};
  content.generation.sampling.seed = 10;
  content.generation.stop.max_tokens = 5;
  const std::vector<LoadRequest> requests = MakeLoadRequests(sets, content, 1, 3);
  ASSERT_THAT(requests, SizeIs(3));
  EXPECT_EQ(requests[0].path, "/v1/chat/completions");
  EXPECT_EQ(Json::Parse(requests[0].body),
            Json::Parse(R"({"model":"m","stream":true,"stream_options":{"include_usage":true},
                            "max_tokens":5,"temperature":0.0,"seed":11,
                            "messages":[{"role":"user","content":"How?"}],
                            "speculative":{"mode":"sd"}})"));
  EXPECT_EQ(requests[1].path, "/v1/completions");
  EXPECT_EQ(Json::Parse(requests[1].body)["prompt"], "Once");
  EXPECT_EQ(Json::Parse(requests[2].body)["messages"][0]["content"], "Why?");

  content.prompts.raw = true;
  content.prompts.limit = 1;
  content.generation.sampling.top_k = 4;
  content.generation.sampling.logit_bias = {{7, -1.5F}};
  const std::vector<LoadRequest> raw = MakeLoadRequests(sets, content, 0, 3);
  EXPECT_EQ(Json::Parse(raw[0].body)["prompt"], "Why?");
  EXPECT_EQ(Json::Parse(raw[1].body)["prompt"], "Once");
  EXPECT_EQ(Json::Parse(raw[2].body)["prompt"], "Why?");
  EXPECT_EQ(Json::Parse(raw[0].body)["top_k"], 4);
  EXPECT_EQ(Json::Parse(raw[0].body)["logit_bias"], Json({{"7", -1.5}}));
}

// A server that behaves as the prompt of a request says.
class PromptedServer {
 public:
  ServerAccess access() const {
    ServerAccess access;
    access.address = *ParseServerUrl(server_.url());
    access.timeout_s = 0.3;
    return access;
  }
  int requests() const { return requests_; }

 private:
  void Handle(const server::HttpRequest& request, const server::HttpExchange& exchange) {
    if (request.head.path == "/v1/models") {
      exchange.Reply({.content_type = "application/json", .body = R"({"data":[{"id":"fake"}]})"});
      return;
    }
    ++requests_;
    const Json body = Json::Parse(request.body);
    Answer(body["prompt"], body["stream_options"]["include_usage"], exchange);
  }

  static void Answer(const std::string& prompt, bool with_usage,
                     const server::HttpExchange& exchange) {
    if (prompt == "refuse") {
      exchange.Reply({.status = 429,
                      .content_type = "application/json",
                      .body = R"({"error":{"message":"the queue is full"}})"});
      return;
    }
    exchange.Begin({.content_type = "text/event-stream"});
    const auto send = [&](const std::string& data) {
      exchange.Write("data: " + data + "\n\n", [] {});
    };
    send(R"({"choices":[{"text":"one two"}]})");
    if (prompt == "hang") return;
    if (prompt == "fail") send(R"({"error":{"message":"lost the model"}})");
    if (prompt == "good") {
      send(R"({"choices":[{"text":" three","finish_reason":"stop"}]})");
      if (with_usage) send(R"({"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":3}})");
      send("[DONE]");
    }
    exchange.End();
  }

  std::atomic<int> requests_ = 0;
  FakeServer server_{[this](const server::HttpRequest& request,
                            const server::HttpExchange& exchange) { Handle(request, exchange); }};
};

LoadRequest Completion(const std::string& prompt) {
  return {"/v1/completions",
          Json({{"prompt", prompt}, {"stream_options", {{"include_usage", true}}}}).dump()};
}

TEST(RunLoad, TimesGoodRepliesAndNamesEveryFailure) {
  const PromptedServer server;
  const ServerAccess access = server.access();
  ASSERT_EQ(*FirstModel(access), "fake");
  int done = 0;
  const std::vector<LoadRecord> records =
      RunLoad(access,
              {Completion("good"), Completion("refuse"), Completion("fail"), Completion("cut"),
               Completion("hang"), Completion("good")},
              {.concurrency = 2}, [&] { ++done; });
  EXPECT_EQ(done, 6);
  EXPECT_EQ(server.requests(), 6);
  std::vector<std::string> errors;
  for (const LoadRecord& record : records) errors.push_back(record.error);
  EXPECT_THAT(errors, ElementsAre("", "http 429", "server error", "cut off", "timeout", ""));
  EXPECT_EQ(records[1].message, "the queue is full");
  EXPECT_EQ(records[2].message, "lost the model");
  for (const std::size_t good : {0, 5}) {
    const LoadRecord& record = records[good];
    EXPECT_EQ(record.text, "one two three");
    EXPECT_EQ(record.tokens(), 3);
    EXPECT_THAT(record.chunk_ns, SizeIs(2));
    EXPECT_GT(record.chunk_ns[0], record.start_ns);
    EXPECT_LE(record.chunk_ns[1], record.end_ns);
  }
}

TEST(RunLoad, KeepsToItsConnectionsAndArrivals) {
  const PromptedServer server;
  const std::vector<LoadRequest> requests(12, Completion("good"));
  const LoadShape shape{.concurrency = 3, .rate = 400, .seed = 5};
  const std::vector<LoadRecord> records = RunLoad(server.access(), requests, shape, [] {});
  const std::vector<std::int64_t> arrivals = ArrivalTimes(shape, requests.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_TRUE(records[i].ok()) << records[i].error;
    EXPECT_EQ(records[i].start_ns - records[0].start_ns, arrivals[i]);
    EXPECT_GE(records[i].chunk_ns[0], records[i].start_ns);
  }
}

TEST(RunLoad, SaysWhereNoServerAnswers) {
  ServerAccess access;
  {
    const PromptedServer server;
    access = server.access();
  }
  const Result<std::string> model = FirstModel(access);
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().message, HasSubstr("no server answers at http://127.0.0.1:"));
  const std::vector<LoadRecord> records = RunLoad(access, {Completion("good")}, {}, [] {});
  EXPECT_EQ(records[0].error, "connection");
  EXPECT_THAT(records[0].chunk_ns, IsEmpty());
}

}  // namespace
}  // namespace foretoken
