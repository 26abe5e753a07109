#include "core/weights/requantize.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/tensor/quantize.h"

namespace foretoken {
namespace {

// More than a piece for each thread, and not a whole number of pieces.
constexpr std::int64_t kRows = 300;
constexpr std::int64_t kWidth = 256;

class RequantizeTest : public ::testing::Test {
 protected:
  RequantizeTest() : values_(kRows * kWidth) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& value : values_) value = normal(random);
    const auto* data = reinterpret_cast<const std::byte*>(values_.data());
    checkpoint_.tensors["model.layers.0.mlp.up_proj.weight"] = {
        WeightFormat::kF32, {kRows, kWidth}, data};
    checkpoint_.tensors["model.norm.weight"] = {WeightFormat::kF32, {kWidth}, data};
  }

  Checkpoint As(const char* type) const {
    return Requantize(checkpoint_, ParseWeightType(type).value(), {.layers = 1});
  }

  std::vector<float> values_;
  Checkpoint checkpoint_;
};

TEST_F(RequantizeTest, TensorsAreConvertedAsTheyAreRead) {
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  const Checkpoint made = As("q5_k_m");
  EXPECT_TRUE(made.quantized());
  EXPECT_EQ(made.Find(name)->format, WeightFormat::kQ5_K);
  std::vector<std::byte> expected(FormatBytes(WeightFormat::kQ5_K, kRows * kWidth));
  StoreElements(WeightFormat::kQ5_K, values_.data(), kRows * kWidth, expected.data());
  const TensorBytes read = made.Read(name);
  EXPECT_EQ(read.made, expected);
  EXPECT_EQ(read.view.data, read.made.data());
  // What has its format already is the file's.
  EXPECT_EQ(made.Read("model.norm.weight").view.data,
            checkpoint_.tensors.at("model.norm.weight").data);
  // And once more, from blocks.
  Checkpoint blocks = checkpoint_;
  blocks.tensors[name] = read.view;
  std::vector<float> numbers(values_.size());
  LoadElements(read.view, 0, kRows * kWidth, numbers.data());
  const TensorBytes again =
      Requantize(blocks, ParseWeightType("f32").value(), {.layers = 1}).Read(name);
  EXPECT_EQ(std::memcmp(again.view.data, numbers.data(), numbers.size() * sizeof(float)), 0);
}

TEST_F(RequantizeTest, FingerprintsTellTypesApart) {
  EXPECT_EQ(As("f32").Fingerprint(), checkpoint_.Fingerprint());
  EXPECT_EQ(As("q4_0").Fingerprint(), As("q4_0").Fingerprint());
  EXPECT_NE(As("q4_0").Fingerprint(), checkpoint_.Fingerprint());
  EXPECT_NE(As("q4_0").Fingerprint(), As("q4_1").Fingerprint());
  const std::string before = As("q4_0").Fingerprint();
  values_[0] += 1;
  EXPECT_NE(As("q4_0").Fingerprint(), before);
}

}  // namespace
}  // namespace foretoken
