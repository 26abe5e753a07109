#include "door/assembly/times.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files/read_file.h"
#include "base/files/temporary_testing.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

constexpr TimesNeeded kNeeded{.rows = true, .costs = true, .most_rows = 4};

EngineModels ModelsWith(const LoadedModel* draft_on_target) {
  EngineModels models{.target = BundledTarget(), .drafts = {}};
  models.drafts[DrafterId::kModel].on_target = draft_on_target;
  return models;
}

EngineModels Models() { return ModelsWith(BundledTarget()); }

// Such as no machine has.
MeasuredTimes Times() {
  MeasuredTimes times{.row_times = TimeTable::Line(3, 1), .knee_rows = 7};
  times.costs.target = TimeTable::Line(500, 10);
  times.costs.first_draft().on_target = TimeTable::Line(50, 1);
  times.costs.sequence_token_us = 0.25;
  return times;
}

class TimesCacheTest : public testing::Test {
 protected:
  TimesCache Cache() const { return {folder_.path() / "times", Models(), kNeeded}; }
  static Json Content(const TimesCache& cache) {
    return Json::Parse(ReadFile(cache.path()).value());
  }
  static void Replace(const TimesCache& cache, const std::string& text) {
    std::ofstream(cache.path(), std::ios::trunc) << text;
  }

  TemporaryFolder folder_;
};

TEST_F(TimesCacheTest, KeepsWhatWasMeasured) {
  EXPECT_FALSE(Cache().Read().has_value());
  Cache().Write(Times());
  const auto kept = Cache().Read();
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->row_times.us(2, 1), 5);
  EXPECT_EQ(kept->knee_rows, 7);
  EXPECT_EQ(kept->costs.target.us(2, 1), 520);
  EXPECT_EQ(kept->costs.first_draft().on_target.us(1, 1), 51);
  EXPECT_EQ(kept->costs.sequence_token_us, 0.25);
  EXPECT_TRUE(kept->costs.first_draft().apart.rows().empty());
}

TEST_F(TimesCacheTest, OtherSettingsHaveOtherFiles) {
  const std::filesystem::path folder = folder_.path() / "times";
  const EngineModels alone = ModelsWith(nullptr);
  TimesNeeded more = kNeeded;
  more.most_rows = 48;  // A larger grid.
  TimesNeeded as_many = kNeeded;
  as_many.most_rows = 5;
  EXPECT_NE(TimesCache(folder, alone, kNeeded).path(), Cache().path());
  EXPECT_NE(TimesCache(folder, Models(), more).path(), Cache().path());
  EXPECT_EQ(TimesCache(folder, Models(), as_many).path(), Cache().path());
  const auto exact =
      LoadModel({.path = BundledModel("demo-target")}, BundledTarget()->device, Precision::kF32);
  EngineModels other = Models();
  other.target = exact->get();
  EXPECT_NE(TimesCache(folder, other, kNeeded).path(), Cache().path());
}

TEST_F(TimesCacheTest, IgnoresWhatMakesNoSense) {
  const TimesCache cache = Cache();
  cache.Write(Times());
  const Json good = Content(cache);
  const auto reads = [&cache](const Json& json) {
    Replace(cache, json.dump());
    return cache.Read().has_value();
  };
  EXPECT_TRUE(reads(good));
  const std::vector<std::pair<std::string, Json>> changes = {
      {"/format", "other"},
      {"/version", 3},
      {"/key", std::string(64, 'a')},
      {"/knee_rows", 0},
      {"/measured_day", good["measured_day"].get<int>() + 2},  // Tomorrow's.
      {"/measured_day", good["measured_day"].get<int>() - 40},
      {"/row_times/rows", {2, 1}},
      {"/costs/target/us/0", 0},
      {"/costs/target/us/0", -3},
      {"/costs/target/us/0", 1e-9},
      {"/costs/target/us/0", 1e300},
      {"/costs/target/us/0", nullptr},
      {"/costs/target", {{"rows", {1}}, {"contexts", {1}}, {"us", Json::array()}}},
      {"/costs/draft_on_target", 3},
      {"/costs/sequence_token_us", -1},
      {"/costs/target_contention", 0.5},
      {"/more", 1},
  };
  for (const auto& [path, value] : changes) {
    Json bad = good;
    bad.Place(path) = value;
    EXPECT_FALSE(reads(bad)) << path << " " << value;
  }
  for (const std::string text : {"", "{}", "[1]", "\xff", "{\"format\": 1e999}"}) {
    Replace(cache, text);
    EXPECT_FALSE(cache.Read().has_value()) << text;
  }
  Replace(cache, good.dump().substr(0, 300));  // Cut off.
  EXPECT_FALSE(cache.Read().has_value());
  cache.Write(Times());
  EXPECT_TRUE(cache.Read().has_value());
}

TEST_F(TimesCacheTest, GoesHalfWayToWhatWasLearned) {
  const TimesCache cache = Cache();
  cache.Refresh(Times().costs, 1000);  // There is nothing to refresh.
  EXPECT_FALSE(cache.Read().has_value());
  cache.Write(Times());
  CostModel learned = Times().costs;
  const double little = 1.21;
  learned.target = learned.target.Scaled(std::vector<double>{1, little});
  const double absurd = 1000;
  learned.first_draft().on_target =
      learned.first_draft().on_target.Scaled(std::vector<double>{absurd, 1});

  cache.Refresh(learned, 20);  // Too few rounds to tell.
  EXPECT_EQ(cache.Read()->costs.target.us(2, 1), 520);
  cache.Refresh(learned, 1000);
  const auto kept = cache.Read();
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->costs.target.us(1, 1), 510);
  EXPECT_NEAR(kept->costs.target.us(2, 1), 520 * 1.1, 1e-9);
  EXPECT_LT(kept->costs.first_draft().on_target.us(1, 1), 51 * 1.25);
  EXPECT_GT(kept->costs.first_draft().on_target.us(1, 1), 51 * 1.2);
  EXPECT_EQ(kept->knee_rows, 7);
}

TEST_F(TimesCacheTest, WhatCannotBeKeptIsNot) {
  folder_.Write("file", "");
  const TimesCache cache(folder_.path() / "file" / "times", Models(), kNeeded);
  cache.Write(Times());
  EXPECT_FALSE(cache.Read().has_value());
}

TEST_F(TimesCacheTest, TheDefaultFolderIsInTheUsersCache) {
  const auto old_home = std::string(getenv("HOME") != nullptr ? getenv("HOME") : "/");
  setenv("HOME", "/home/somebody", 1);
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(DefaultTimesFolder(), "/home/somebody/.cache/foretoken/times");
  setenv("XDG_CACHE_HOME", "relative", 1);  // To be ignored, says the specification.
  EXPECT_EQ(DefaultTimesFolder(), "/home/somebody/.cache/foretoken/times");
  setenv("XDG_CACHE_HOME", "/caches", 1);
  EXPECT_EQ(DefaultTimesFolder(), "/caches/foretoken/times");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(DefaultTimesFolder(), "");
  setenv("HOME", old_home.c_str(), 1);
}

// A second engine measures nothing; what one has decoded changes what the next begins with.
TEST_F(TimesCacheTest, EnginesBeginWithWhatOthersMeasuredAndLearned) {
  const EngineConfig config{.max_batch = 1};
  const Measuring measuring{.kept_in = folder_.path()};
  const auto make = [&] {
    auto engine = MakeEngine(Mode::kAuto, config, BundledTarget(), DraftOptions{}, measuring);
    EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
    return std::move(engine).value();
  };
  const auto times = [](const Engine& engine) {
    const auto all = TimesOf(engine).costs.target.times();
    return std::vector<double>(all.begin(), all.end());
  };
  const auto first = make();
  const auto second = make();
  ASSERT_FALSE(times(*first).empty());
  EXPECT_EQ(times(*first), times(*second));
  {
    const auto decoding = make();
    const auto taught = [&] {
      std::int64_t rounds = 0;
      for (const Mode mode : kModes) rounds += decoding->planner_report()->modes[mode].rounds;
      return rounds;
    };
    const std::vector<std::vector<Token>> prompts(8, StoryPrompts()[0]);
    // Passes that other programs hold up teach nothing, for most of a minute at most.
    do {
      Generate(*decoding, prompts, {.temperature = 1}, {.max_tokens = 160});
    } while (taught() < TimesCache::kRoundsToLearn);
  }
  EXPECT_NE(times(*make()), times(*first));
}

TEST(MeasureTimes, MeasuresNothingThatIsNotNeeded) {
  const MeasuredTimes times = MeasureTimes(ModelsWith(nullptr), {});
  EXPECT_TRUE(times.row_times.rows().empty());
  EXPECT_TRUE(times.costs.target.rows().empty());
}

TEST(MeasureTimes, RowsCostMoreTheMoreThereAre) {
  const MeasuredTimes times = MeasureTimes(ModelsWith(nullptr), {.rows = true});
  ASSERT_FALSE(times.row_times.rows().empty());
  EXPECT_LE(times.row_times.us(1, 0), times.row_times.us(64, 0));
  EXPECT_GE(times.knee_rows, 1);
  EXPECT_TRUE(times.costs.target.rows().empty());
}

TEST(MeasureTimes, TakesWhatIsKnownAsItIs) {
  MeasuredTimes known;
  known.row_times = TimeTable::Line(3, 1);
  known.costs.target = TimeTable::Line(5, 1);
  const MeasuredTimes times =
      MeasureTimes(ModelsWith(nullptr), {.rows = true, .costs = true}, known);
  EXPECT_EQ(times.row_times.us(1, 0), 4);
  EXPECT_EQ(times.costs.target.us(1, 0), 6);
}

// With the drafts' times too: SSD's own device and SD's share of the target's.
TEST(MeasureTimes, MeasuresTheDraftsThatAreThere) {
  const auto draft =
      LoadModel({.path = BundledModel("demo-draft")}, BundledTarget()->device, Precision::kBF16);
  ASSERT_TRUE(draft.ok());
  MeasuredTimes known;
  known.costs.target = TimeTable::Line(5, 1);
  const MeasuredTimes times =
      MeasureTimes(ModelsWith(draft->get()), {.costs = true, .most_rows = 4}, known);
  EXPECT_FALSE(times.costs.first_draft().on_target.rows().empty());
  EXPECT_TRUE(times.costs.first_draft().apart.rows().empty());
  EXPECT_EQ(times.costs.target_contention, 1);
}

}  // namespace
}  // namespace foretoken
