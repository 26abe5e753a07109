// Texts become captures, also after a time in which nothing could be written.
#include "door/learning/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <numeric>

#include "base/files/temporary_testing.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kTokens = 9;

class TrafficTest : public testing::Test {
 protected:
  TrafficTest() : store_(TapStore::Allocate(kShape, kBlockSize)) {
    std::iota(tokens_.begin(), tokens_.end(), 100);
    kv_.blocks = {0};
    kv_.committed = kTokens - 1;
  }

  void Begin(TrafficLimits limits = {}) {
    limits.kept_bytes = limits.file_bytes = 1 << 20;
    if (limits.waiting_bytes == 0) limits.waiting_bytes = 1 << 20;
    limits.retry_ns = 1'000'000;
    if (limits.flush_ns == 0) limits.flush_ns = 1'000'000;
    limits.held_back_every = 1000;
    auto traffic =
        Traffic::Begin(captures(), kShape, "words", limits, [this](std::string_view said) {
          const std::lock_guard lock(mutex_);
          said_.emplace_back(said);
        });
    ASSERT_TRUE(traffic.ok()) << traffic.error().message;
    traffic_ = std::move(traffic).value();
  }
  void Take() {
    traffic_->Take({.tokens = tokens_,
                    .prompt_tokens = 3,
                    .sampling = &sampling_,
                    .taps = {&store_, &kv_, {.first = 0, .width = kShape.hidden}}});
  }
  template <typename Condition>
  void Await(const Condition& condition) {
    for (int i = 0; i < 5000 && !condition(traffic_->counts()); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_TRUE(condition(traffic_->counts()));
  }
  fs::path captures() const { return folder_.path() / "learned" / "captures"; }
  // As a disk that is full for a time.
  void BreakFolder() { fs::rename(captures(), folder_.path() / "away"); }
  void MendFolder() { fs::rename(folder_.path() / "away", captures()); }

  inline static const TapShape kShape{.points = {TapShape::kFinalState}, .hidden = 8};
  const TemporaryFolder folder_;
  TapStore store_;
  SequenceKv kv_;
  std::array<Token, kTokens> tokens_;
  SamplingParams sampling_;
  std::mutex mutex_;
  std::vector<std::string> said_;
  std::unique_ptr<Traffic> traffic_;
};

TEST_F(TrafficTest, ATextCountsOnceItIsOnDisk) {
  Begin();
  Take();
  Await([](const TrafficCounts& now) { return now.captured == 1; });
  EXPECT_EQ(traffic_->counts().tokens, kTokens - 1);
  EXPECT_FALSE(fs::is_empty(captures()));
}

TEST_F(TrafficTest, TextsThatKeepComingDoNotPutTheFileOff) {
  Begin({.flush_ns = 50'000'000});
  for (int i = 0; i < 1000 && traffic_->counts().captured == 0; ++i) {
    Take();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GT(traffic_->counts().captured, 1) << "those of 50 ms together";
}

TEST_F(TrafficTest, CapturesAreTheirOwnersAlone) {
  Begin();
  Take();
  Await([](const TrafficCounts& now) { return now.captured == 1; });
  const auto rights = [](const fs::path& path) {
    struct stat status = {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status.st_mode & 0777;
  };
  EXPECT_EQ(rights(captures()), 0700U);
  EXPECT_EQ(rights(captures().parent_path()), 0700U);
  EXPECT_EQ(rights(fs::directory_iterator(captures())->path()), 0600U);
}

TEST_F(TrafficTest, GoesOnWhenTheDiskHasRoomAgainAndLosesNothing) {
  Begin();
  Take();
  Await([](const TrafficCounts& now) { return now.captured == 1; });
  BreakFolder();
  Take();
  Await([](const TrafficCounts& now) { return !now.failure.empty(); });
  Take();
  Take();
  EXPECT_EQ(traffic_->counts().captured, 1) << "what is not on disk does not count";
  EXPECT_EQ(traffic_->counts().left_out, 0) << "there is room for them";
  MendFolder();
  Await([](const TrafficCounts& now) { return now.captured == 4; });
  Await([](const TrafficCounts& now) { return now.failure.empty(); });
  EXPECT_EQ(traffic_->counts().tokens, 4 * (kTokens - 1));
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("tried again until it works"),
                                 HasSubstr("can be written again")))
      << "one sentence for each change, however many tries";
}

TEST_F(TrafficTest, WhatHasNoRoomWhileNothingCanBeWrittenIsCounted) {
  const std::size_t text_bytes = (kTokens - 1) * kShape.hidden * sizeof(BFloat16);
  Begin({.waiting_bytes = 2 * text_bytes});
  BreakFolder();
  Take();
  Await([](const TrafficCounts& now) { return !now.failure.empty(); });
  for (int i = 0; i < 5; ++i) Take();
  EXPECT_EQ(traffic_->counts().left_out, 3) << "two wait";
  MendFolder();
  Await([](const TrafficCounts& now) { return now.captured == 3; });
}

TEST_F(TrafficTest, EndsThoughNothingCanBeWritten) {
  Begin();
  BreakFolder();
  Take();
  traffic_.reset();
  EXPECT_TRUE(fs::is_empty(folder_.path() / "away"));
}

}  // namespace
}  // namespace foretoken
