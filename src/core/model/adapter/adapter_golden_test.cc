#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/files/temporary_testing.h"
#include "core/backend/cpu/quant/quant_isa.h"
#include "core/model/adapter/adapter.h"
#include "core/model/adapter/adapter_file.h"
#include "core/model/families/read_config.h"
#include "core/model/golden_testing.h"
#include "core/model/model_testing.h"
#include "core/model/open_checkpoint.h"
#include "json/json.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> AdapterNames() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(GoldenFolder() / "adapters")) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// The small model of a family with adapters, of which requests take one or none.
std::unique_ptr<Model> LoadAdapted(const std::string& name, const std::vector<fs::path>& adapters,
                                   Backend* backend) {
  const auto checkpoint = OpenCheckpoint(GoldenFolder() / "families" / name, "");
  const auto config = ReadModelConfig(checkpoint.value());
  const auto weights = LoadWeights(checkpoint.value(), config.value(), backend);
  std::vector<Adapter> read;
  for (const fs::path& path : adapters) {
    auto adapter = ReadAdapter(path, config.value());
    EXPECT_TRUE(adapter.ok()) << adapter.error().message;
    if (!adapter.ok()) return nullptr;
    read.push_back(std::move(adapter).value());
  }
  if (read.empty()) return weights.value()->MakeModel(backend);
  return weights.value()->MakeModel(backend, std::make_shared<const AdapterSet>(read, backend));
}

// Adapters of models of several families, as PEFT saves them: logits and greedy continuation are
// those that PEFT and `transformers` computed in float32 (tests/golden/README.md).
class AdapterGoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(AdapterGoldenTest, LogitsAndGreedyTokensAgree) {
  const fs::path folder = GoldenFolder() / "adapters" / GetParam();
  std::ifstream file(folder / "golden.json");
  const Json golden = Json::Parse(file);
  const auto prompt = golden.at("prompt_ids").get<std::vector<Token>>();
  const auto greedy = golden.at("greedy_ids").get<std::vector<Token>>();
  const auto last = golden.at("last_logits").get<std::vector<float>>();
  const auto final = golden.at("final_logits").get<std::vector<float>>();
  for (const BackendCase& each : BackendCases()) {
    const auto backend = each.make(Precision::kF32);
    const auto model = LoadAdapted(golden.at("model"), {folder}, backend.get());
    ASSERT_NE(model, nullptr);
    const std::size_t vocabulary = last.size();
    const int length = prompt.size() + greedy.size();
    SequenceRunner runner(model.get(), length, {.index = 0});
    const float* logits = runner.Append(prompt) + (prompt.size() - 1) * vocabulary;
    EXPECT_LT(Apart({logits, vocabulary}, last), kGoldenTolerance) << each.name;
    std::vector<Token> tokens;
    while (tokens.size() < greedy.size()) {
      tokens.push_back(static_cast<Token>(std::max_element(logits, logits + vocabulary) - logits));
      logits = runner.Append(std::span(&tokens.back(), 1));
    }
    EXPECT_EQ(tokens, greedy) << each.name;
    EXPECT_LT(Apart({logits, vocabulary}, final), kGoldenTolerance) << each.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Adapters, AdapterGoldenTest, testing::ValuesIn(AdapterNames()),
                         [](const auto& param) { return TestName(param.param); });

TEST(PickledAdapterTest, HasTheSameFactors) {
  const fs::path folder = GoldenFolder() / "adapters/llama-patterns";
  const TemporaryFolder pickled;
  fs::copy_file(folder / "adapter_config.json", pickled.path() / "adapter_config.json");
  fs::copy_file(GoldenFolder() / "torch/adapter.bin", pickled.path() / "adapter_model.bin");
  const auto read = OpenAdapterFile(pickled.path(), kLlama);
  ASSERT_TRUE(read.ok()) << read.error().message;
  const AdapterFile expected = OpenAdapterFile(folder, kLlama).value();
  const auto same = [](const TensorView& a, const TensorView& b) {
    return a.format == b.format && a.shape == b.shape &&
           std::memcmp(a.data, b.data, a.bytes()) == 0;
  };
  ASSERT_EQ(read->factors.size(), expected.factors.size());
  for (const auto& [name, factors] : expected.factors) {
    const AdapterFactors& found = read->factors.at(name);
    EXPECT_EQ(found.scale, factors.scale) << name;
    EXPECT_TRUE(same(found.down, factors.down) && same(found.up, factors.up)) << name;
  }
}

// Sequences of several adapters, of scales of their own and of none in one pass have the bits that
// they have alone; without an adapter also those of a model that was loaded without any.
TEST(AdapterBatchTest, RowsOfAllAdaptersHaveTheBitsThatTheyHaveAlone) {
  constexpr int kLength = 6;
  const fs::path adapters = GoldenFolder() / "adapters";
  const std::vector<AdapterUse> uses = {{0, 1}, {}, {1, 1}, {0, 0.5F}, {1, -2}, {}, {0, 1}};
  for (const Precision precision : {Precision::kF32, Precision::kBF16, Precision::kPortable}) {
    const auto backend = precision == Precision::kPortable
                             ? MakePortableCpuBackend(*PortableKernels().back(),
                                                      *AvailableQuantKernels().back(), nullptr)
                             : MakeCpuBackend(*AvailableKernels().back(), nullptr, precision);
    const auto model =
        LoadAdapted("llama", {adapters / "llama", adapters / "llama-patterns"}, backend.get());
    ASSERT_NE(model, nullptr);
    const auto plain = LoadAdapted("llama", {}, backend.get());
    const std::size_t vocabulary = model->config().vocabulary;
    KvStore kv = backend->AllocateKv(model->KvShapeFor(std::ssize(uses)));
    ForwardBatch batch;
    std::vector<std::int32_t> blocks;
    for (std::size_t i = 0; i < uses.size(); ++i) blocks.push_back(static_cast<std::int32_t>(i));
    std::vector<std::vector<Token>> texts;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      batch.block_tables.push_back(&blocks[i]);
      std::vector<Token>& text = texts.emplace_back();
      for (std::int32_t p = 0; p < kLength; ++p) {
        text.push_back(static_cast<Token>(3 + (i * 31 + p * 17) % 120));
        const RowPlace place{p, blocks[i] * kBlockSize + p, blocks[i], p + 1, 0};
        batch.rows.push_back({text.back(), place, true, false, uses[i]});
      }
    }
    const float* logits = model->Forward(batch, kv).values;
    const std::vector<float> together(logits, logits + batch.rows.size() * vocabulary);
    std::vector<std::vector<float>> alone;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      Model* const by = uses[i].index < 0 ? plain.get() : model.get();
      SequenceRunner runner(by, kLength, uses[i]);
      const float* own = runner.Append(texts[i]);
      alone.emplace_back(own, own + kLength * vocabulary);
      const auto* mine = &together[i * kLength * vocabulary];
      EXPECT_TRUE(std::equal(alone[i].begin(), alone[i].end(), mine)) << "sequence " << i;
    }
  }
}

}  // namespace
}  // namespace foretoken
