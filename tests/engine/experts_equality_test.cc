// The promise for models whose rows choose experts: what shares a pass with a row decides which
// weights the pass reads, and nothing else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/experts_testing.h"

namespace foretoken {
namespace {

constexpr StopRules kExpertsStop{.max_tokens = 64, .ignore_eos = true};

const ExpertsFolder& SharedExpertsFolder() {
  static const ExpertsFolder folder;
  return folder;
}

std::unique_ptr<LoadedModel> LoadExperts(ExpertsPlace experts) {
  auto loaded = LoadModel({.path = SharedExpertsFolder().path(), .experts = experts},
                          std::make_shared<Device>(CoreSet{TargetCore()}), {});
  EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message);
  return std::move(loaded).value();
}

LoadedModel* ExpertsTarget() {
  static const auto target = LoadExperts(ExpertsPlace::kMemory);
  return target.get();
}

std::vector<SamplingParams> ExpertsSettings() {
  return {{}, {.temperature = 0.8F, .seed = 3}, {.temperature = 1.0F, .top_p = 0.9F, .seed = 8}};
}

std::vector<std::vector<Token>> ExpertsTokens(Engine& engine, const SamplingParams& sampling,
                                              int* accepted = nullptr) {
  std::vector<std::vector<Token>> tokens;
  for (const auto& output : Generate(engine, StoryPrompts(), sampling, kExpertsStop)) {
    tokens.push_back(output.tokens);
    if (accepted != nullptr) *accepted += output.stats.accepted;
  }
  return tokens;
}

std::unique_ptr<Engine> MakeSmall(Mode mode, const EngineConfig& config,
                                  LoadedModel* target = ExpertsTarget()) {
  return Make(mode, config, SharedExpertsFolder().Draft(), target);
}

// AR, one sequence at a time, without a prefix cache.
const std::vector<std::vector<Token>>& ExpertsTruth(std::size_t setting) {
  static std::vector<std::vector<std::vector<Token>>> known(ExpertsSettings().size());
  auto& truth = known[setting];
  if (truth.empty()) {
    const auto engine = MakeSmall(Mode::kAr, {.max_batch = 1, .prefix_cache = false});
    truth = ExpertsTokens(*engine, ExpertsSettings()[setting]);
  }
  return truth;
}

struct ExpertsCase {
  std::string name;
  Mode mode;
  EngineConfig config;
};

void PrintTo(const ExpertsCase& test, std::ostream* out) { *out << test.name; }

class ExpertsEquality : public testing::TestWithParam<ExpertsCase> {};

TEST_P(ExpertsEquality, EveryTokenEqualsAr) {
  const auto engine = MakeSmall(GetParam().mode, GetParam().config);
  for (std::size_t i = 0; i < ExpertsSettings().size(); ++i) {
    int accepted = 0;
    EXPECT_EQ(ExpertsTokens(*engine, ExpertsSettings()[i], &accepted), ExpertsTruth(i)) << i;
    if (NeedsDraft(GetParam().mode)) {
      EXPECT_GT(accepted, 50) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, ExpertsEquality,
    testing::Values(
        ExpertsCase{"ArBatch4", Mode::kAr, {.max_batch = 4}},
        ExpertsCase{"ArSmallChunks", Mode::kAr, {.max_batch = 3, .prefill_chunk = 5}},
        ExpertsCase{"SdBatch1", Mode::kSd, {.max_batch = 1}},
        ExpertsCase{"SdBatch4", Mode::kSd, {.plan = {.lookahead = 4}, .max_batch = 4}},
        ExpertsCase{
            "SdTree", Mode::kSd, {.plan = {.lookahead = 6, .tree_width = 3}, .max_batch = 3}},
        ExpertsCase{"SsdBatch1", Mode::kSsd, {.max_batch = 1}},
        ExpertsCase{"SsdBatch4", Mode::kSsd, {.max_batch = 4}},
        ExpertsCase{
            "SsdTree", Mode::kSsd, {.plan = {.lookahead = 6, .tree_width = 3}, .max_batch = 2}},
        ExpertsCase{"Sssd", Mode::kSssd, {.plan = {.lookahead = 15}, .max_batch = 3}},
        ExpertsCase{"AutoBatch4", Mode::kAuto, {.max_batch = 4}},
        // Room for little more than one sequence: preemption by necessity.
        ExpertsCase{
            "SdTinyPool", Mode::kSd, {.max_batch = 5, .max_context = 128, .kv_tokens = 160}},
        ExpertsCase{
            "SsdTinyPool", Mode::kSsd, {.max_batch = 5, .max_context = 128, .kv_tokens = 160}}),
    [](const auto& test) { return test.param.name; });

TEST(ExpertsInTheFile, EmitTheTokensOfPackedOnes) {
  const auto target = LoadExperts(ExpertsPlace::kFile);
  for (const Mode mode : {Mode::kAr, Mode::kSd, Mode::kSsd}) {
    const auto engine = MakeSmall(mode, {.max_batch = 3}, target.get());
    for (std::size_t i = 0; i < ExpertsSettings().size(); ++i) {
      EXPECT_EQ(ExpertsTokens(*engine, ExpertsSettings()[i]), ExpertsTruth(i)) << ModeName(mode);
    }
  }
}

TEST(ExpertsInTheFile, AreThoseOfTargetsInFiles) {
  DraftOptions draft = SharedExpertsFolder().Draft();
  draft.source = {.path = SharedExpertsFolder().path(), .experts = ExpertsPlace::kFile};
  const auto engine = MakeEngine(Mode::kSd, {}, ExpertsTarget(), draft);
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(engine.error().message, testing::HasSubstr("keep them in memory"));
  const auto random = OpenModel({.synthetic = "moe-669m", .experts = ExpertsPlace::kFile});
  ASSERT_FALSE(random.ok());
  EXPECT_THAT(random.error().message, testing::HasSubstr("lie in no file"));
}

}  // namespace
}  // namespace foretoken
