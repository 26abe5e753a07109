// The promise with adapters: sequences of several of them, and of none, are decoded together, and
// each emits what it emits alone, in every mode.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

// Random factors for every matrix of the model; what they add is a tenth of what is there.
Adapter RandomAdapter(const ModelConfig& config, int rank, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto numbers = [&random](std::int64_t count, double size) {
    std::normal_distribution<float> normal(0, static_cast<float>(size));
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
  };
  Adapter adapter;
  for (const LayerSpec& layer : config.layers) {
    const std::int64_t hidden = config.hidden;
    const std::int64_t width = layer.mlp.intermediate;
    const std::pair<std::int64_t, std::int64_t> sizes[] = {
        {layer.attention.shape().row_width(), hidden},
        {hidden, layer.attention.query_width()},
        {2 * width, hidden},
        {hidden, width}};
    auto& matrices = adapter.layers.emplace_back();
    for (std::size_t i = 0; i < kAdaptedMatrices; ++i) {
      const auto [outputs, inputs] = sizes[i];
      matrices[i] = {.rank = rank,
                     .down = numbers(rank * inputs, 1 / std::sqrt(static_cast<double>(inputs))),
                     .up = numbers(outputs * rank, 0.1 / std::sqrt(static_cast<double>(rank)))};
    }
  }
  return adapter;
}

class Adapters : public testing::TestWithParam<Precision> {
 protected:
  using Outputs = std::vector<std::vector<Token>>;

  Adapters() {
    auto opened = OpenModel({.path = BundledModel("demo-target")}).value();
    opened.adapters = {RandomAdapter(opened.config, 4, 1), RandomAdapter(opened.config, 4, 2),
                       RandomAdapter(opened.config, 9, 3)};
    target_ = LoadModel(opened, BundledTarget()->device, GetParam()).value();
  }

  // What each prompt's text is decoded with.
  static AdapterUse UseOf(std::size_t prompt) {
    constexpr AdapterUse kUses[] = {{0, 1}, {}, {1, 1}, {2, 1}, {0, 0.5F}, {1, -1}};
    return kUses[prompt % std::size(kUses)];
  }

  // All outputs, a second time where there is a prefix cache to find them in: of the same prompts
  // with other adapters in between.
  Outputs Decode(Mode mode, const EngineConfig& config) {
    DraftOptions draft = BundledDraft();
    draft.precision = GetParam();
    auto engine = MakeEngine(mode, config, target_.get(), draft);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    Outputs outputs;
    for (int turn = 0; turn < (config.prefix_cache ? 2 : 1); ++turn) {
      Collector collector;
      std::vector<SequenceId> ids;
      const auto prompts = Prompts();
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        ids.push_back(*(*engine)->Submit(
            {.prompt = prompts[i],
             .sampling = {.temperature = i % 2 == 0 ? 0.0F : 0.8F, .seed = 7 + i},
             .stop = {.max_tokens = 48},
             .adapter = UseOf(i),
             .listener = &collector}));
      }
      Outputs now;
      for (const auto& output : Finish(**engine, &collector, ids)) now.push_back(output.tokens);
      if (turn == 1) {
        EXPECT_EQ(now, outputs);
      }
      outputs = std::move(now);
    }
    return outputs;
  }

  // Long enough for a shared block, and each with several adapters.
  static std::vector<std::vector<Token>> Prompts() {
    std::string text;
    for (int i = 0; i < 4; ++i) text += "Once upon a time, there was a little girl named Lily. ";
    return std::vector(12, BundledTarget()->tokenizer->Encode(text, true, false));
  }

  std::unique_ptr<LoadedModel> target_;
};

INSTANTIATE_TEST_SUITE_P(All, Adapters, testing::Values(Precision::kBF16, Precision::kPortable),
                         [](const auto& test) { return std::string(PrecisionName(test.param)); });

TEST_P(Adapters, EveryModeEmitsWhatArEmitsAlone) {
  const Outputs truth = Decode(Mode::kAr, {.max_batch = 1, .prefix_cache = false});
  EXPECT_NE(truth[0], truth[2]) << "adapters tell";
  EXPECT_NE(truth[0], truth[4]) << "scales tell";
  const SpeculationPlan tree{.lookahead = 6, .tree_width = 3, .max_nodes = 31};
  EXPECT_EQ(Decode(Mode::kAr, {.max_batch = 12, .prefill_chunk = 5}), truth);
  EXPECT_EQ(Decode(Mode::kNgram, {.max_batch = 6}), truth);
  EXPECT_EQ(Decode(Mode::kSd, {.max_batch = 5}), truth);
  EXPECT_EQ(Decode(Mode::kSd, {.plan = tree, .max_batch = 2}), truth);
  EXPECT_EQ(Decode(Mode::kSsd, {.max_batch = 4}), truth);
  // Too few slots for all: sequences give way and are computed again.
  EXPECT_EQ(
      Decode(Mode::kSsd, {.plan = tree, .max_batch = 5, .max_context = 160, .kv_tokens = 224}),
      truth);
}

TEST_P(Adapters, WithoutOneTheModelIsWhatItIs) {
  auto plain =
      LoadModel({.path = BundledModel("demo-target")}, BundledTarget()->device, GetParam());
  ASSERT_TRUE(plain.ok());
  const auto decode = [](LoadedModel* target) {
    auto engine = MakeEngine(Mode::kAr, {.max_batch = 1}, target, {});
    return Generate(**engine, {StoryPrompts()[0]}, {}, {.max_tokens = 40})[0].tokens;
  };
  EXPECT_EQ(decode(target_.get()), decode(plain->get()));
}

TEST_P(Adapters, UnknownOnesAreRefused) {
  auto engine = MakeEngine(Mode::kAr, {.max_batch = 1}, target_.get(), {});
  Collector collector;
  const auto refused =
      (*engine)->Submit({.prompt = {1}, .adapter = {.index = 3}, .listener = &collector});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().field, "lora");
  EXPECT_THAT(refused.error().message, testing::HasSubstr("loaded with 3"));
}

TEST(AdapterNames, AreDistinctAndGoBehindAModels) {
  const auto error_of = [](std::vector<AdapterSource> adapters) {
    const std::string folder = std::string(FORETOKEN_SOURCE_DIR) + "/tests/golden/";
    for (AdapterSource& adapter : adapters) adapter.path = folder + "adapters/llama";
    const auto loaded = LoadModel({.path = BundledModel("demo-target")}, BundledTarget()->device,
                                  Precision::kBF16, {}, {}, adapters);
    return loaded.ok() ? "none" : loaded.error().message;
  };
  EXPECT_THAT(error_of({{.name = "a:b"}}), testing::HasSubstr("cannot be called 'a:b'"));
  EXPECT_THAT(error_of({{.name = "a"}, {.name = "a"}}), testing::HasSubstr("two adapters"));
  EXPECT_THAT(error_of({{.name = "a"}}), testing::HasSubstr("the adapter is of another model"));
}

}  // namespace
}  // namespace foretoken
