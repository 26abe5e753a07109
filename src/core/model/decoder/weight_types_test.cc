// A small Llama in a GGUF file for each type of weights: its logits are those that `transformers`
// computes in float32 from the dequantised weights (tests/golden/make_weight_types.py).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/numbers/integers.h"
#include "core/model/families/read_config.h"
#include "core/model/model_testing.h"
#include "core/model/open_checkpoint.h"
#include "core/weights/checkpoint.h"
#include "core/weights/gguf/gguf_testing.h"
#include "json/json.h"

namespace foretoken {
namespace {

const Json& GoldenTypes() {
  static const Json golden = Json::Parse(
      std::ifstream(std::string(FORETOKEN_SOURCE_DIR) + "/tests/golden/weight_types.json"));
  return golden;
}

// Byte i of tensor number t is the lowest byte of a mixture of t * 2^32 + i.
std::string RandomBytes(std::uint64_t tensor, std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t word = (tensor << 32) + i;
    for (int round = 0; round < 3; ++round) {
      word *= 0x9E3779B97F4A7C15U;
      word ^= word >> 32;
    }
    bytes[i] = static_cast<char>(word & 0xFF);
  }
  return bytes;
}

// `changes` are [offset, width, bits kept, bits set] of an integer in each block.
std::string MakeBlocks(std::uint64_t tensor, WeightFormat format, std::int64_t elements,
                       const Json& changes) {
  std::string bytes = RandomBytes(tensor, FormatBytes(format, elements));
  for (std::size_t block = 0; block < bytes.size(); block += InfoOf(format).block_bytes) {
    for (const Json& change : changes) {
      char* field = bytes.data() + block + change[0].get<std::size_t>();
      for (int byte = 0; byte < change[1].get<int>(); ++byte) {
        const auto part = [&](int of) { return change[of].get<std::uint32_t>() >> (8 * byte); };
        field[byte] = static_cast<char>((field[byte] & part(2)) | part(3));
      }
    }
  }
  return bytes;
}

std::string WriteModel(WeightFormat format) {
  GgufBuilder builder;
  builder.Text("general.architecture", "llama");
  for (const auto& [key, value] : GoldenTypes()["config"].items()) {
    builder.Key("llama." + key, GgufType::kUint32, value.get<std::uint32_t>());
  }
  builder.Key("llama.attention.layer_norm_rms_epsilon", GgufType::kFloat32,
              GoldenTypes()["norm_epsilon"].get<float>());
  builder.Key("llama.rope.freq_base", GgufType::kFloat32, GoldenTypes()["rope_theta"].get<float>());
  const Json& type = GoldenTypes()["types"][std::string(FormatName(format))];
  std::uint64_t number = 0;
  for (const Json& tensor : GoldenTypes()["tensors"]) {
    const auto shape = tensor[1].get<std::vector<std::uint64_t>>();
    const bool matrix = shape.size() == 2;
    std::int64_t elements = 1;
    for (const std::uint64_t size : shape) elements *= static_cast<std::int64_t>(size);
    builder.Tensor(tensor[0].get<std::string>(), {shape.rbegin(), shape.rend()},
                   matrix ? type["number"].get<std::uint32_t>() : 0,
                   MakeBlocks(number++, matrix ? format : WeightFormat::kF32, elements,
                              matrix ? type["changes"] : GoldenTypes()["gains"]));
  }
  std::string path =
      testing::TempDir() + "weight_types." + std::string(FormatName(format)) + ".gguf";
  builder.Write(path);
  return path;
}

class WeightTypes : public testing::TestWithParam<WeightFormat> {
 protected:
  void SetUp() override {
    const std::string path = WriteModel(GetParam());
    auto checkpoint = OpenCheckpoint(path, "");
    std::filesystem::remove(path);  // It is mapped.
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    checkpoint_ = std::move(*checkpoint);
    const auto rows = GoldenTypes()["types"][std::string(FormatName(GetParam()))]["logits"]
                          .get<std::vector<std::vector<double>>>();
    for (const auto& row : rows) expected_.insert(expected_.end(), row.begin(), row.end());
  }

  // The logits of the rows that the golden file has: the last of the prompt's.
  std::vector<float> LogitsOf(Backend* backend) {
    const auto config = ReadModelConfig(checkpoint_);
    EXPECT_TRUE(config.ok()) << config.error().message;
    const auto weights = LoadWeights(checkpoint_, *config, backend);
    EXPECT_TRUE(weights.ok()) << weights.error().message;
    const std::unique_ptr<Model> model = (*weights)->MakeModel(backend);
    const auto prompt = GoldenTypes()["prompt_ids"].get<std::vector<Token>>();
    SequenceRunner runner(model.get(), Int(prompt.size()));
    const float* end = runner.Append(prompt) + prompt.size() * config->vocabulary;
    return {end - expected_.size(), end};
  }

  // How far `logits` are from those expected, in parts of their size, both root mean square.
  double Error(const std::vector<float>& logits) const {
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      error += (logits[i] - expected_[i]) * (logits[i] - expected_[i]);
      size += expected_[i] * expected_[i];
    }
    return std::sqrt(error / size);
  }

  Checkpoint checkpoint_;
  std::vector<double> expected_;
};

TEST_P(WeightTypes, Float32LogitsAgree) {
  for (const BackendCase& backend : BackendCases()) {
    EXPECT_LT(Error(LogitsOf(backend.make(Precision::kF32).get())), 1e-5) << backend.name;
  }
}

// Inputs of products are rounded to 8 bits, by half a percent of their size
// (docs/develop/arithmetic.md), or to BF16, by a sixth of one, where weights are no blocks. A
// dozen products lie behind a logit.
TEST_P(WeightTypes, PortableLogitsAgree) {
  EXPECT_LT(Error(LogitsOf(MakePortableReference().get())), IsQuantized(GetParam()) ? 0.03 : 0.01);
}

std::vector<WeightFormat> AllFormats() {
  std::vector<WeightFormat> formats;
  for (const WeightFormatInfo& info : kWeightFormatInfos) {
    formats.push_back(*ParseWeightFormat(info.name));
  }
  return formats;
}

INSTANTIATE_TEST_SUITE_P(All, WeightTypes, testing::ValuesIn(AllFormats()),
                         [](const auto& test) { return std::string(FormatName(test.param)); });

}  // namespace
}  // namespace foretoken
