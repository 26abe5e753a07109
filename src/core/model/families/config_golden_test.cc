#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/files/temporary_testing.h"
#include "base/numbers/integers.h"
#include "core/model/families/read_config.h"
#include "core/model/golden_testing.h"
#include "core/model/model_testing.h"
#include "core/model/open_checkpoint.h"
#include "json/json.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Json Read(const fs::path& path) {
  std::ifstream file(path);
  return Json::Parse(file);
}

std::vector<std::string> ConfigNames() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(GoldenFolder() / "configs")) {
    names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

// A part of what tests/golden/fuzz_configs.py has tried: changed configurations of the small
// models, each of which is computed as `transformers` does, or refused.
class ConfigGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  // The changed model's logits, or the sentence that refuses it.
  Result<std::vector<float>> LogitsOf(const Json& changed, int context,
                                      const std::vector<Token>& tokens) {
    Json config = Read(GoldenFolder() / "families" / GetParam() / "config.json");
    for (const auto& name : changed.at("removed")) config.erase(name.get<std::string>());
    config.update(changed.at("set"));
    const fs::path link = folder_.path() / "model.safetensors";
    if (!fs::exists(link)) {
      fs::create_symlink(GoldenFolder() / "families" / GetParam() / "model.safetensors", link);
    }
    std::ofstream(folder_.path() / "config.json") << config;
    FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenCheckpoint(folder_.path(), ""));
    FT_ASSIGN_OR_RETURN(const ModelConfig read, ReadModelConfig(checkpoint, context));
    const auto backend = MakeCpuBackend(*AvailableKernels().back(), nullptr, Precision::kF32);
    FT_ASSIGN_OR_RETURN(const auto weights, LoadWeights(checkpoint, read, backend.get()));
    const auto model = weights->MakeModel(backend.get());
    if (read.max_positions < std::ssize(tokens)) return InvalidInput("max_position_embeddings");
    SequenceRunner runner(model.get(), Int(tokens.size()));
    const float* logits = runner.Append(tokens);
    logits += (tokens.size() - 1) * Size(read.vocabulary);
    return std::vector<float>(logits, logits + read.vocabulary);
  }

  TemporaryFolder folder_;
};

TEST_P(ConfigGoldenTest, ChangesAreComputedOrRefused) {
  const Json golden = Read(GoldenFolder() / "configs" / (GetParam() + ".json"));
  const auto tokens = golden.at("tokens").get<std::vector<Token>>();
  for (const Json& each : golden.at("cases")) {
    SCOPED_TRACE(each.at("field").get<std::string>() + " " + each.at("change").get<std::string>());
    const auto logits = LogitsOf(each, golden.at("context"), tokens);
    EXPECT_EQ(logits.ok(), each.at("outcome") == "equal")
        << (logits.ok() ? "is computed" : logits.error().message);
    if (!logits.ok() || each.at("outcome") != "equal") continue;
    const auto expected = each.at("last_logits").get<std::vector<float>>();
    const float most = each.at("largest").get<float>() * 1e-3F;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(logits->at(i * each.at("step").get<std::size_t>()), expected[i], most);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ConfigGoldenTest, testing::ValuesIn(ConfigNames()),
                         [](const auto& param) { return TestName(param.param); });

}  // namespace
}  // namespace foretoken
