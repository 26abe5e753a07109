// The promise for models whose rows choose experts: what shares a pass with a row decides which
// weights the pass reads, and nothing else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assembly/experts_testing.h"

namespace foretoken {
namespace {

constexpr StopRules kStop{.max_tokens = 64, .ignore_eos = true};

const ExpertsFolder& Folder() {
  static const ExpertsFolder folder;
  return folder;
}

std::unique_ptr<LoadedModel> Load(ExpertsPlace experts) {
  auto loaded = LoadModel({.path = Folder().path(), .experts = experts},
                          std::make_shared<Device>(CoreSet{AvailableCores().front()}), {});
  EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message);
  return std::move(loaded).value();
}

LoadedModel* Target() {
  static const auto target = Load(ExpertsPlace::kMemory);
  return target.get();
}

std::vector<SamplingParams> Settings() {
  return {{}, {.temperature = 0.8F, .seed = 3}, {.temperature = 1.0F, .top_p = 0.9F, .seed = 8}};
}

std::vector<std::vector<Token>> TokensOf(Engine& engine, const SamplingParams& sampling,
                                         int* accepted = nullptr) {
  std::vector<std::vector<Token>> tokens;
  for (const auto& output : Generate(engine, StoryPrompts(), sampling, kStop)) {
    tokens.push_back(output.tokens);
    if (accepted != nullptr) *accepted += output.stats.accepted;
  }
  return tokens;
}

std::unique_ptr<Engine> MakeSmall(Mode mode, const EngineConfig& config,
                                  LoadedModel* target = Target()) {
  return Make(mode, config, Folder().Draft(), target);
}

// AR, one sequence at a time, without a prefix cache.
const std::vector<std::vector<Token>>& Truth(std::size_t setting) {
  static std::vector<std::vector<std::vector<Token>>> known(Settings().size());
  auto& truth = known[setting];
  if (truth.empty()) {
    const auto engine = MakeSmall(Mode::kAr, {.max_batch = 1, .prefix_cache = false});
    truth = TokensOf(*engine, Settings()[setting]);
  }
  return truth;
}

struct Case {
  std::string name;
  Mode mode;
  EngineConfig config;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class ExpertsEquality : public testing::TestWithParam<Case> {};

TEST_P(ExpertsEquality, EveryTokenEqualsAr) {
  const auto engine = MakeSmall(GetParam().mode, GetParam().config);
  for (std::size_t i = 0; i < Settings().size(); ++i) {
    int accepted = 0;
    EXPECT_EQ(TokensOf(*engine, Settings()[i], &accepted), Truth(i)) << i;
    if (NeedsDraft(GetParam().mode)) {
      EXPECT_GT(accepted, 50) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, ExpertsEquality,
    testing::Values(
        Case{"ArBatch4", Mode::kAr, {.max_batch = 4}},
        Case{"ArSmallChunks", Mode::kAr, {.max_batch = 3, .prefill_chunk = 5}},
        Case{"SdBatch1", Mode::kSd, {.max_batch = 1}},
        Case{"SdBatch4", Mode::kSd, {.plan = {.lookahead = 4}, .max_batch = 4}},
        Case{"SdTree", Mode::kSd, {.plan = {.lookahead = 6, .tree_width = 3}, .max_batch = 3}},
        Case{"SsdBatch1", Mode::kSsd, {.max_batch = 1}},
        Case{"SsdBatch4", Mode::kSsd, {.max_batch = 4}},
        Case{"SsdTree", Mode::kSsd, {.plan = {.lookahead = 6, .tree_width = 3}, .max_batch = 2}},
        Case{"Sssd", Mode::kSssd, {.plan = {.lookahead = 15}, .max_batch = 3}},
        Case{"AutoBatch4", Mode::kAuto, {.max_batch = 4}},
        // Room for little more than one sequence: preemption by necessity.
        Case{"SdTinyPool", Mode::kSd, {.max_batch = 5, .max_context = 128, .kv_tokens = 160}},
        Case{"SsdTinyPool", Mode::kSsd, {.max_batch = 5, .max_context = 128, .kv_tokens = 160}}),
    [](const auto& test) { return test.param.name; });

TEST(ExpertsInTheFile, EmitTheTokensOfPackedOnes) {
  const auto target = Load(ExpertsPlace::kFile);
  for (const Mode mode : {Mode::kAr, Mode::kSd, Mode::kSsd}) {
    const auto engine = MakeSmall(mode, {.max_batch = 3}, target.get());
    for (std::size_t i = 0; i < Settings().size(); ++i) {
      EXPECT_EQ(TokensOf(*engine, Settings()[i]), Truth(i)) << ModeName(mode);
    }
  }
}

TEST(ExpertsInTheFile, AreThoseOfTargetsInFiles) {
  DraftOptions draft = Folder().Draft();
  draft.source = {.path = Folder().path(), .experts = ExpertsPlace::kFile};
  const auto engine = MakeEngine(Mode::kSd, {}, Target(), draft);
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(engine.error().message, testing::HasSubstr("keep them in memory"));
  const auto random = OpenModel({.synthetic = "moe-669m", .experts = ExpertsPlace::kFile});
  ASSERT_FALSE(random.ok());
  EXPECT_THAT(random.error().message, testing::HasSubstr("lie in no file"));
}

}  // namespace
}  // namespace foretoken
