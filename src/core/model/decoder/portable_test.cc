// A model whose matrices are of many formats: under the portable arithmetic every instruction set
// gives the logits of plain loops, bit for bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "base/numbers/integers.h"
#include "core/backend/cpu/quant/quant_isa.h"
#include "core/backend/testing/reference_backend.h"
#include "core/model/model_testing.h"
#include "core/model/model_weights.h"

namespace foretoken {
namespace {

constexpr int kPortableVocabulary = 300;
constexpr int kPortableHidden = 256;

ModelConfig SmallPortable() {
  return LlamaConfig({.hidden = kPortableHidden,
                      .intermediate = 512,
                      .layers = 2,
                      .heads = 8,
                      .kv_heads = 2,
                      .head_dim = 32,
                      .vocabulary = kPortableVocabulary,
                      .max_positions = 256,
                      .tied_embeddings = true});
}

// A checkpoint in memory with random weights.
class PortableCheckpoint {
 public:
  PortableCheckpoint() {
    using enum WeightFormat;
    Add("embedding.weight", kQ6_K, kPortableVocabulary, kPortableHidden);
    AddOnes("output_norm.weight");
    const WeightFormat value_formats[] = {kQ6_K, kQ8_0};
    for (int layer = 0; layer < 2; ++layer) {
      const std::string at = "layers." + std::to_string(layer) + ".";
      Add(at + "q.weight", kQ4_K, 256, kPortableHidden);
      Add(at + "k.weight", kQ4_K, 64, kPortableHidden);
      Add(at + "v.weight", value_formats[layer], 64, kPortableHidden);
      Add(at + "o.weight", kIQ4_XS, kPortableHidden, 256);
      Add(at + "gate.weight", kQ5_0, 512, kPortableHidden);
      Add(at + "up.weight", kBF16, 512, kPortableHidden);
      Add(at + "down.weight", kMXFP4, kPortableHidden, 512);
      AddOnes(at + "attention_norm.weight");
      AddOnes(at + "mlp_norm.weight");
    }
  }
  const Checkpoint& checkpoint() const { return checkpoint_; }

 private:
  void Add(const std::string& name, WeightFormat format, std::int64_t rows, std::int64_t width) {
    std::vector<std::byte>& bytes = bytes_.emplace_back(FormatBytes(format, rows * width));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    // The upper bytes of halves and BF16 numbers are small, so that no scale is large.
    for (std::size_t i = 1; i < bytes.size(); i += 2) {
      bytes[i] &= format == WeightFormat::kBF16 ? std::byte{0xBC} : std::byte{0xA3};
    }
    const std::size_t block = InfoOf(format).block_bytes;
    for (std::size_t i = 0; format == WeightFormat::kMXFP4 && i < bytes.size(); i += block) {
      bytes[i] = std::byte{120};
    }
    checkpoint_.tensors[name] = {format, {rows, width}, bytes.data()};
  }
  void AddOnes(const std::string& name) {
    const std::vector<float> ones(kPortableHidden, 1.0F);
    std::vector<std::byte>& bytes = bytes_.emplace_back(kPortableHidden * sizeof(float));
    std::memcpy(bytes.data(), ones.data(), bytes.size());
    checkpoint_.tensors[name] = {WeightFormat::kF32, {kPortableHidden}, bytes.data()};
  }

  std::mt19937 random_{7};
  std::deque<std::vector<std::byte>> bytes_;
  Checkpoint checkpoint_;
};

std::vector<float> PortableLogits(const PortableCheckpoint& model, std::unique_ptr<Backend> backend,
                                  std::size_t chunk) {
  const auto weights = LoadWeights(model.checkpoint(), SmallPortable(), backend.get());
  EXPECT_TRUE(weights.ok()) << weights.error().message;
  const std::unique_ptr<Model> loaded = (*weights)->MakeModel(backend.get());
  std::mt19937 random(5);
  std::vector<Token> tokens(75);
  for (Token& token : tokens) token = static_cast<Token>(random() % kPortableVocabulary);
  SequenceRunner runner(loaded.get(), Int(tokens.size()));
  std::vector<float> all;
  for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const std::size_t count = std::min(chunk, tokens.size() - begin);
    const float* logits = runner.Append(std::span(tokens).subspan(begin, count));
    all.insert(all.end(), logits, logits + count * kPortableVocabulary);
  }
  return all;
}

class PortableModel : public testing::TestWithParam<KvFormat> {};

INSTANTIATE_TEST_SUITE_P(Kv, PortableModel,
                         testing::Values(KvFormat::kBF16, KvFormat::kF32, KvFormat::kQ8_0),
                         [](const auto& test) { return std::string(KvFormatName(test.param)); });

TEST_P(PortableModel, EveryInstructionSetGivesTheLogitsOfPlainLoops) {
  const KvFormat kv = GetParam();
  const PortableCheckpoint model;
  const std::vector<float> expected = PortableLogits(model, MakePortableReference(kv), 75);
  EXPECT_THAT(expected, testing::Each(testing::Truly([](float x) { return std::isfinite(x); })));
  EXPECT_NE(expected.front(), expected.back());
  const auto check = [&](const cpu::Kernels& kernels, const cpu::QuantKernels& quant,
                         std::size_t chunk) {
    const auto logits =
        PortableLogits(model, MakePortableCpuBackend(kernels, quant, nullptr, kv), chunk);
    ASSERT_EQ(logits.size(), expected.size());
    EXPECT_EQ(std::memcmp(logits.data(), expected.data(), logits.size() * sizeof(float)), 0)
        << kernels.name << " " << quant.name << ", passes of " << chunk << " rows";
  };
  for (const cpu::Kernels* kernels : PortableKernels()) {
    check(*kernels, *AvailableQuantKernels().back(), 75);
  }
  for (const cpu::QuantKernels* quant : AvailableQuantKernels()) {
    for (const std::size_t chunk : {1, 7, 75}) check(*PortableKernels().back(), *quant, chunk);
  }
}

}  // namespace
}  // namespace foretoken
