#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "base/numbers/integers.h"
#include "core/model/families/read_config.h"
#include "core/model/model_testing.h"
#include "core/model/open_checkpoint.h"
#include "core/weights/checkpoint.h"
#include "json/json.h"

namespace foretoken {
namespace {

// Each model folder with a golden.json: the logits after its prompt and its greedy continuation,
// computed in float64 by an independent program.
class GoldenTest : public testing::TestWithParam<std::tuple<BackendCase, std::string>> {
 protected:
  void SetUp() override {
    const std::filesystem::path root = FORETOKEN_SOURCE_DIR;
    const std::string name = std::get<1>(GetParam());
    for (const auto& folder : {root / "models" / name, root / "../shared/data/models" / name}) {
      if (std::filesystem::exists(folder / "golden.json")) directory_ = folder;
    }
    if (directory_.empty()) GTEST_SKIP() << name << " with its golden.json is not on this machine";
    std::ifstream file(directory_ / "golden.json");
    golden_ = Json::Parse(file);
  }

  std::unique_ptr<Model> Load() {
    auto checkpoint = OpenCheckpoint(directory_, "");
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    auto config = ReadModelConfig(*checkpoint);
    EXPECT_TRUE(config.ok()) << config.error().message;
    auto weights = LoadWeights(*checkpoint, *config, backend_.get());
    EXPECT_TRUE(weights.ok()) << weights.error().message;
    return (*weights)->MakeModel(backend_.get());
  }

  std::filesystem::path directory_;
  Json golden_;
  std::unique_ptr<Backend> backend_ = std::get<0>(GetParam()).make(Precision::kF32);
};

TEST_P(GoldenTest, LogitsAndGreedyTokensAgree) {
  const auto model = Load();
  const auto prompt = golden_["prompt_ids"].get<std::vector<Token>>();
  const auto expected_logits = golden_["last_logits"].get<std::vector<float>>();
  const auto expected_tokens = golden_["greedy_ids"].get<std::vector<Token>>();
  const int vocabulary = model->config().vocabulary;
  ASSERT_EQ(std::ssize(expected_logits), vocabulary);
  ASSERT_EQ(expected_tokens.size(), 48U);

  SequenceRunner runner(model.get(), static_cast<int>(prompt.size() + expected_tokens.size()));
  const float* logits = runner.Append(prompt) + (prompt.size() - 1) * vocabulary;
  float largest = 0;
  for (const float logit : expected_logits) largest = std::max(largest, std::fabs(logit));
  EXPECT_THAT(std::span(logits, vocabulary),
              testing::Pointwise(testing::FloatNear(2e-5F * largest), expected_logits));

  std::vector<Token> tokens;
  while (tokens.size() < expected_tokens.size()) {
    const float* best = std::max_element(logits, logits + vocabulary);
    tokens.push_back(static_cast<Token>(best - logits));
    logits = runner.Append(std::span(&tokens.back(), 1));
  }
  EXPECT_EQ(tokens, expected_tokens);
}

// What tests/golden/make_states.py computed, in float64 as well.
TEST_P(GoldenTest, FinalStatesAgree) {
  std::ifstream file(std::string(FORETOKEN_SOURCE_DIR) + "/tests/golden/states.json");
  const auto all = Json::Parse(file);
  const std::string name = std::get<1>(GetParam());
  if (!all.contains(name)) GTEST_SKIP() << "there are no golden states of " << name;
  const auto prompt = all[name]["prompt_ids"].get<std::vector<Token>>();
  const auto last = all[name]["last"].get<std::vector<float>>();
  const auto mean = all[name]["mean"].get<std::vector<float>>();

  const auto model = Load();
  const std::size_t hidden = last.size();
  ASSERT_EQ(Int(hidden), model->config().hidden);
  SequenceRunner runner(model.get(), Int(prompt.size()));
  runner.Append(prompt);
  const std::span states(model->states(), prompt.size() * hidden);
  std::vector<float> own_mean(hidden);
  for (std::size_t i = 0; i < states.size(); ++i) {
    own_mean[i % hidden] += states[i] / static_cast<float>(prompt.size());
  }
  const auto near = testing::Pointwise(
      testing::FloatNear(2e-5F * std::fabs(*std::ranges::max_element(last))), last);
  EXPECT_THAT(states.last(hidden), near);
  EXPECT_THAT(own_mean, testing::Pointwise(testing::FloatNear(2e-5F), mean));
}

INSTANTIATE_TEST_SUITE_P(
    Models, GoldenTest,
    testing::Combine(testing::ValuesIn(BackendCases()),
                     testing::Values("stories260K", "llama2xs-279K", "demo-target", "demo-draft")),
    [](const auto& test) {
      return TestName(std::get<0>(test.param).name + "_" + std::get<1>(test.param));
    });

}  // namespace
}  // namespace foretoken
