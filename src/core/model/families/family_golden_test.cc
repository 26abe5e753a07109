#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/numbers/integers.h"
#include "core/model/families/read_config.h"
#include "core/model/golden_testing.h"
#include "core/model/model_testing.h"
#include "core/model/open_checkpoint.h"
#include "json/json.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

fs::path FamiliesFolder() { return GoldenFolder() / "families"; }

std::vector<std::string> FamilyNames() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(FamiliesFolder())) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// A small model of each family: its logits and greedy continuation are those that `transformers`
// computed in float32 (tests/golden/README.md).
class FamilyGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::ifstream file(FamiliesFolder() / GetParam() / "golden.json");
    golden_ = Json::Parse(file);
  }

  std::unique_ptr<Model> Load(Backend* backend) {
    auto checkpoint = OpenCheckpoint(FamiliesFolder() / GetParam(), "");
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    if (!checkpoint.ok()) return nullptr;
    // Its texts are shorter than the context that it was first trained on.
    const int context = GetParam() == "phi3" ? 128 : 0;
    auto weights = LoadWeights(*checkpoint, *ReadModelConfig(*checkpoint, context), backend);
    EXPECT_TRUE(weights.ok()) << weights.error().message;
    return weights.ok() ? (*weights)->MakeModel(backend) : nullptr;
  }

  template <typename T>
  T Golden(const char* name) const {
    return golden_.at(name).get<T>();
  }

  Json golden_;
};

TEST_P(FamilyGoldenTest, LogitsAndGreedyTokensAgree) {
  for (const BackendCase& each : BackendCases()) {
    const auto backend = each.make(Precision::kF32);
    const auto model = Load(backend.get());
    ASSERT_NE(model, nullptr);
    const auto prompt = Golden<std::vector<Token>>("prompt_ids");
    const auto greedy = Golden<std::vector<Token>>("greedy_ids");
    const auto probes = Golden<std::vector<Token>>("probe_ids");
    const auto probe_logits = Golden<std::vector<std::vector<float>>>("probe_logits");
    const int vocabulary = model->config().vocabulary;
    SequenceRunner runner(model.get(), static_cast<int>(prompt.size() + greedy.size()));
    const float* logits = runner.Append(prompt);
    for (std::size_t row = 0; row < prompt.size(); ++row) {
      std::vector<float> here;
      for (const Token probe : probes) here.push_back(logits[row * vocabulary + probe]);
      ASSERT_LT(Apart(here, probe_logits.at(row)), kGoldenTolerance)
          << each.name << ", row " << row;
    }
    logits += (prompt.size() - 1) * vocabulary;
    EXPECT_LT(Apart({logits, std::size_t(vocabulary)}, Golden<std::vector<float>>("last_logits")),
              kGoldenTolerance)
        << each.name;
    std::vector<Token> tokens;
    while (tokens.size() < greedy.size()) {
      tokens.push_back(static_cast<Token>(std::max_element(logits, logits + vocabulary) - logits));
      logits = runner.Append(std::span(&tokens.back(), 1));
    }
    EXPECT_EQ(tokens, greedy) << each.name;
    EXPECT_LT(Apart({logits, std::size_t(vocabulary)}, Golden<std::vector<float>>("final_logits")),
              kGoldenTolerance)
        << each.name;
  }
}

// Rows have the bits that they have alone, in passes of any size, in every precision.
TEST_P(FamilyGoldenTest, PassesOfAnySizeGiveTheSameBits) {
  const auto prompt = Golden<std::vector<Token>>("prompt_ids");
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    const auto backend = MakeCpuBackend(*AvailableKernels().back(), nullptr, precision);
    const auto model = Load(backend.get());
    ASSERT_NE(model, nullptr);
    std::vector<std::vector<float>> all;
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{5}, prompt.size()}) {
      SequenceRunner runner(model.get(), Int(prompt.size()));
      std::vector<float>& logits = all.emplace_back();
      for (std::size_t begin = 0; begin < prompt.size(); begin += chunk) {
        const std::size_t count = std::min(chunk, prompt.size() - begin);
        const float* rows = runner.Append(std::span(prompt).subspan(begin, count));
        logits.insert(logits.end(), rows, rows + count * model->config().vocabulary);
      }
    }
    EXPECT_EQ(all[0], all[1]);
    EXPECT_EQ(all[0], all[2]);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyGoldenTest, testing::ValuesIn(FamilyNames()),
                         [](const auto& param) { return TestName(param.param); });

}  // namespace
}  // namespace foretoken
