// The promise with keys and values of every format: each mode emits the tokens of AR, bit for bit.

#include <gtest/gtest.h>

#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

struct Kept {
  Precision precision;
  KvFormat kv;
};

void PrintTo(const Kept& kept, std::ostream* out) {
  *out << PrecisionName(kept.precision) << ", KV in " << KvFormatName(kept.kv);
}

class KvFormats : public testing::TestWithParam<Kept> {
 protected:
  using Outputs = std::vector<std::vector<Token>>;

  KvFormats() {
    auto loaded = LoadModel({.path = BundledModel("demo-target")}, BundledTarget()->device,
                            GetParam().precision, GetParam().kv);
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    target_ = std::move(*loaded);
  }

  // All outputs at some temperatures. A second time where there is a prefix cache to find them in.
  std::vector<Outputs> Decode(Mode mode, const EngineConfig& config) {
    DraftOptions draft = BundledDraft();
    draft.precision = GetParam().precision;
    draft.kv = GetParam().kv;
    auto engine = MakeEngine(mode, config, target_.get(), draft);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    std::vector<Outputs> all;
    for (const float temperature : {0.0F, 0.8F}) {
      Outputs outputs;
      for (int turn = 0; turn < (config.prefix_cache ? 2 : 1); ++turn) {
        Outputs now;
        for (const auto& output :
             Generate(**engine, StoryPrompts(), {.temperature = temperature, .seed = 11},
                      {.max_tokens = 80})) {
          now.push_back(output.tokens);
        }
        if (turn == 1) {
          EXPECT_EQ(now, outputs);
        }
        outputs = std::move(now);
      }
      all.push_back(std::move(outputs));
    }
    return all;
  }

  std::unique_ptr<LoadedModel> target_;
};

INSTANTIATE_TEST_SUITE_P(All, KvFormats,
                         testing::Values(Kept{Precision::kBF16, KvFormat::kQ8_0},
                                         Kept{Precision::kPortable, KvFormat::kQ8_0},
                                         Kept{Precision::kBF16, KvFormat::kF32},
                                         Kept{Precision::kF32, KvFormat::kQ8_0}),
                         [](const auto& test) {
                           return std::string(PrecisionName(test.param.precision)) + "_" +
                                  std::string(KvFormatName(test.param.kv));
                         });

TEST_P(KvFormats, EveryModeEmitsTheTokensOfAr) {
  EXPECT_EQ(target_->backend->kv_format(), GetParam().kv);
  const auto truth = Decode(Mode::kAr, {.max_batch = 1, .prefix_cache = false});
  EXPECT_GT(truth[0][0].size(), 20U);
  const SpeculationPlan tree{.lookahead = 6, .tree_width = 3, .max_nodes = 31};
  EXPECT_EQ(Decode(Mode::kAr, {.max_batch = 3, .prefill_chunk = 5}), truth);
  EXPECT_EQ(Decode(Mode::kSd, {.max_batch = 4}), truth);
  EXPECT_EQ(Decode(Mode::kSd, {.plan = tree, .max_batch = 2}), truth);
  EXPECT_EQ(Decode(Mode::kSsd, {.max_batch = 1}), truth);
  // Too few slots for all: sequences give way and are computed again.
  EXPECT_EQ(
      Decode(Mode::kSsd, {.plan = tree, .max_batch = 5, .max_context = 160, .kv_tokens = 192}),
      truth);
}

// The same weights with another format are another function of the prefix, if a close one.
TEST(KvFormat, IsWhatAttentionReads) {
  const auto logprobs = [](KvFormat kv) {
    const auto target = LoadModel({.path = BundledModel("demo-target")}, BundledTarget()->device,
                                  Precision::kBF16, kv);
    EXPECT_TRUE(target.ok());
    auto engine = MakeEngine(Mode::kAr, {.max_batch = 1}, target->get(), {});
    EXPECT_TRUE(engine.ok());
    const auto outputs =
        Generate(**engine, {StoryPrompts()[0]}, {.top_logprobs = 1}, {.max_tokens = 10});
    std::vector<float> values;
    for (const auto& entry : outputs[0].logprobs) values.push_back(entry[0].logprob);
    return values;
  };
  const auto floats = logprobs(KvFormat::kF32);
  for (const KvFormat kv : {KvFormat::kBF16, KvFormat::kQ8_0}) {
    const auto rounded = logprobs(kv);
    ASSERT_EQ(rounded.size(), floats.size());
    EXPECT_NE(rounded, floats);
    for (std::size_t i = 0; i < floats.size(); ++i) EXPECT_NEAR(rounded[i], floats[i], 0.05F);
  }
}

}  // namespace
}  // namespace foretoken
