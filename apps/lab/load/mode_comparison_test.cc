#include "apps/lab/load/mode_comparison.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>

#include "apps/lab/load/bench_server.h"
#include "apps/lab/load/fake_server_testing.h"
#include "json/json.h"

namespace foretoken {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A request of `tokens` tokens that took so many milliseconds.
LoadRecord CompletedIn(int tokens, std::int64_t ms) {
  LoadRecord record;
  record.end_ns = ms * 1'000'000;
  record.chunk_ns = {record.end_ns / 2, record.end_ns};
  record.counted_tokens = tokens;
  return record;
}

TEST(ModesJson, ComparesRoundByRoundWithTheFirst) {
  LoadRecord refused;
  refused.end_ns = 1'000'000;
  refused.error = "http 503";
  refused.message = "full";
  const std::vector<ModeLoad> loads = {
      {"ar", {{CompletedIn(10, 100)}, {CompletedIn(10, 400)}, {CompletedIn(10, 200)}}},
      {"auto", {{CompletedIn(10, 50)}, {CompletedIn(10, 100), refused}, {CompletedIn(10, 200)}}}};
  const Json modes = ModesJson(loads, {});
  ASSERT_EQ(modes.size(), 2U);
  EXPECT_EQ(modes[0]["speedup"]["value"], 1);
  EXPECT_DOUBLE_EQ(modes[0]["output_tokens_per_s"]["median"].get<double>(), 50);
  EXPECT_DOUBLE_EQ(modes[1]["output_tokens_per_s"]["median"].get<double>(), 100);
  // The geometric mean of 2, 4 and 1.
  EXPECT_NEAR(modes[1]["speedup"]["value"].get<double>(), 2, 1e-9);
  EXPECT_NEAR(modes[0]["load"]["duration_s"].get<double>(), 0.7, 1e-9);
  const std::string table = RenderModes(modes);
  EXPECT_THAT(table, HasSubstr("over ar"));
  EXPECT_THAT(table, HasSubstr("3 of 4"));
  EXPECT_THAT(table, HasSubstr("auto: 1 x http 503: full"));
}

// A server that notes which mode each request names.
class NotingServer {
 public:
  std::string url() const { return server_.url(); }
  std::vector<std::string> modes() {
    const std::lock_guard lock(mutex_);
    return modes_;
  }

 private:
  void Handle(const server::HttpRequest& request, const server::HttpExchange& exchange) {
    const Json body = Json::Parse(request.body);
    {
      const std::lock_guard lock(mutex_);
      modes_.push_back(body["speculative"].value("mode", "none") + body["prompt"].dump());
    }
    exchange.Reply({.content_type = "text/event-stream",
                    .body = "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\n"
                            "data: [DONE]\n\n"});
  }

  std::mutex mutex_;
  std::vector<std::string> modes_;
  FakeServer server_{[this](const server::HttpRequest& request,
                            const server::HttpExchange& exchange) { Handle(request, exchange); }};
};

TEST(RunServerBench, GivesEveryModeItsTurnFirst) {
  const std::string folder = testing::TempDir() + "mode_comparison_test";
  std::filesystem::create_directories(folder);
  const std::string prompts = folder + "/prompts.txt";
  std::ofstream(prompts) << "x\n";
  NotingServer server;
  ServerBenchOptions options;
  options.url = server.url();
  options.model = "m";
  options.modes = "ar,auto";
  options.rounds = 3;
  options.warm_up = 1;
  options.neighbour = {.cores = FormatCores({AvailableCores().front()}), .bursts = "0.01"};
  PromptOptions of_file;
  of_file.files = {prompts};
  of_file.raw = true;
  const ReportFiles files{.json = folder + "/report.json", .html = folder + "/report.html"};
  testing::internal::CaptureStdout();
  const Result<int> code = RunServerBench(options, of_file, {}, files);
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, 0);
  EXPECT_THAT(server.modes(),
              ElementsAre("ar\"x\"", "auto\"x\"",  // The warm-up.
                          "ar\"x\"", "auto\"x\"", "auto\"x\"", "ar\"x\"", "ar\"x\"", "auto\"x\""));
  EXPECT_THAT(text, HasSubstr("Beside a neighbour on cores"));
  const Json report = Json::Parse(std::ifstream(files.json));
  EXPECT_EQ(report["meta"]["rounds"], 3);
  EXPECT_EQ(report["modes"][1]["load"]["requests"], 3);
  std::ifstream page(files.html);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(page), {}), ReportPage(report));

  options.modes = "ar,fast";
  EXPECT_FALSE(RunServerBench(options, of_file, {}, {}).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace foretoken
