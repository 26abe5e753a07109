// Small models of the families beside `transformers` (tests/golden/make_families.py).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "model/model_testing.h"
#include "weights/checkpoint.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

class Families : public testing::TestWithParam<std::tuple<BackendCase, std::string>> {
 protected:
  void SetUp() override {
    const std::string folder =
        std::string(FORETOKEN_SOURCE_DIR) + "/tests/golden/families/" + std::get<1>(GetParam());
    golden_ = Json::parse(std::ifstream(folder + "/golden.json"));
    auto checkpoint = Checkpoint::Open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    const auto config = ReadModelConfig(*checkpoint);
    ASSERT_TRUE(config.ok()) << config.error().message;
    const auto weights = LoadWeights(*checkpoint, *config, backend_.get());
    ASSERT_TRUE(weights.ok()) << weights.error().message;
    model_ = (*weights)->MakeModel(backend_.get());
  }

  std::size_t vocabulary() const { return static_cast<std::size_t>(model_->config().vocabulary); }
  static Token Best(std::span<const float> logits) {
    return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
  }
  static auto Near(const std::vector<float>& expected) {
    return testing::Pointwise(testing::FloatNear(kTolerance), expected);
  }

  // Logits reach from -10 to 10, and are written with five decimals.
  static constexpr float kTolerance = 2e-4F;

  Json golden_;
  std::unique_ptr<Backend> backend_ = std::get<0>(GetParam()).make(Precision::kF32);
  std::unique_ptr<Model> model_;
};

TEST_P(Families, EveryRowOfThePromptAgrees) {
  const auto prompt = golden_["prompt_ids"].get<std::vector<Token>>();
  const auto probes = golden_["probe_ids"].get<std::vector<Token>>();
  SequenceRunner runner(model_.get(), static_cast<int>(prompt.size()));
  const float* logits = runner.Append(prompt);
  for (std::size_t row = 0; row < prompt.size(); ++row, logits += vocabulary()) {
    std::vector<float> probed;
    for (const Token token : probes) probed.push_back(logits[token]);
    ASSERT_THAT(probed, Near(golden_["probe_logits"][row])) << "after token " << row;
    ASSERT_EQ(Best({logits, vocabulary()}), golden_["best_ids"][row]) << "after token " << row;
  }
  EXPECT_THAT(std::span(logits - vocabulary(), vocabulary()), Near(golden_["last_logits"]));
}

TEST_P(Families, GreedyTokensAgree) {
  const auto prompt = golden_["prompt_ids"].get<std::vector<Token>>();
  const auto expected = golden_["greedy_ids"].get<std::vector<Token>>();
  SequenceRunner runner(model_.get(), static_cast<int>(prompt.size() + expected.size()));
  const float* logits = runner.Append(prompt) + (prompt.size() - 1) * vocabulary();
  std::vector<Token> tokens;
  while (tokens.size() < expected.size()) {
    tokens.push_back(Best({logits, vocabulary()}));
    logits = runner.Append(std::span(&tokens.back(), 1));
  }
  EXPECT_EQ(tokens, expected);
  EXPECT_THAT(std::span(logits, vocabulary()), Near(golden_["final_logits"]));
}

INSTANTIATE_TEST_SUITE_P(All, Families,
                         testing::Combine(testing::ValuesIn(BackendCases()),
                                          testing::Values("llama", "llama-linear")),
                         [](const auto& test) {
                           return TestName(std::get<0>(test.param).name + "_" +
                                           std::get<1>(test.param));
                         });

}  // namespace
}  // namespace foretoken
