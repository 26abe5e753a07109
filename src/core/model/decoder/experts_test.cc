// A model with experts: whatever rows share a pass, and however files keep the weights.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <filesystem>
#include <random>

#include "core/backend/cpu/quant/quant_isa.h"
#include "core/model/families/read_config.h"
#include "core/model/memory_needs.h"
#include "core/model/model_testing.h"
#include "core/model/open_checkpoint.h"

namespace foretoken {
namespace {

constexpr int kExpertsVocabulary = 90;
constexpr int kExpertsHidden = 64;
constexpr int kWidth = 96;
constexpr int kExperts = 6;
constexpr int kChosen = 2;

constexpr int kShared = 32;

// What layers may have besides the simplest routing: all of it.
enum class ExpertsKind { kPlain, kAll };

ModelConfig SmallExperts(ExpertsKind kind = ExpertsKind::kPlain) {
  ModelConfig config = LlamaConfig({.hidden = kExpertsHidden,
                                    .intermediate = kWidth,
                                    .layers = 2,
                                    .heads = 4,
                                    .kv_heads = 2,
                                    .head_dim = 16,
                                    .vocabulary = kExpertsVocabulary,
                                    .max_positions = 128,
                                    .tied_embeddings = true});
  for (LayerSpec& layer : config.layers) {
    layer.mlp.routing = {kExperts, kChosen};
    if (kind == ExpertsKind::kPlain) continue;
    layer.mlp.routing = {.experts = kExperts,
                         .chosen = kChosen,
                         .weights = Routing::Weights::kSigmoidsOfSum,
                         .factor = 2.5F,
                         .groups = 3,
                         .chosen_groups = 2,
                         .group_score = Routing::GroupScore::kTwoLargest};
    layer.mlp.choice_bias = true;
    layer.mlp.shared_intermediate = kShared;
    layer.mlp.shared_gate = true;
  }
  return config;
}

enum class ExpertsForm { kNumbered, kStacked };

// Random weights, the same in both forms: matrices of experts in Q8_0.
class ExpertsCheckpoint {
 public:
  explicit ExpertsCheckpoint(ExpertsForm form, ExpertsKind kind = ExpertsKind::kPlain) {
    Floats("embedding.weight", {kExpertsVocabulary, kExpertsHidden});
    Ones("output_norm.weight");
    for (const std::string at : {"layers.0.", "layers.1."}) {
      for (const char* name : {"q", "o"})
        Floats(at + name + ".weight", {kExpertsHidden, kExpertsHidden});
      for (const char* name : {"k", "v"}) Floats(at + name + ".weight", {32, kExpertsHidden});
      Ones(at + "attention_norm.weight");
      Ones(at + "mlp_norm.weight");
      Floats(at + "router.weight", {kExperts, kExpertsHidden});
      Experts(form, at, "gate", kWidth, kExpertsHidden);
      Experts(form, at, "up", kWidth, kExpertsHidden);
      Experts(form, at, "down", kExpertsHidden, kWidth);
      if (kind == ExpertsKind::kPlain) continue;
      Floats(at + "choice_bias", {kExperts});
      for (const char* name : {"gate", "up"}) {
        Floats(at + "shared." + name + ".weight", {kShared, kExpertsHidden});
      }
      Floats(at + "shared.down.weight", {kExpertsHidden, kShared});
      // A row is stored as a vector in files of some kinds.
      Floats(at + "shared_gate.weight", form == ExpertsForm::kStacked
                                            ? std::vector<std::int64_t>{kExpertsHidden}
                                            : std::vector<std::int64_t>{1, kExpertsHidden});
    }
  }

  Checkpoint checkpoint;

 private:
  void Floats(const std::string& name, std::vector<std::int64_t> shape) {
    TensorView view{WeightFormat::kF32, std::move(shape), nullptr};
    auto& bytes = bytes_.emplace_back(view.bytes());
    std::normal_distribution<float> normal(0, 0.2F);
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(float)) {
      const float value = normal(random_);
      std::memcpy(bytes.data() + i, &value, sizeof(value));
    }
    view.data = bytes.data();
    checkpoint.tensors[name] = view;
  }
  void Ones(const std::string& name) {
    const std::vector<float> ones(kExpertsHidden, 1.0F);
    auto& bytes = bytes_.emplace_back(kExpertsHidden * sizeof(float));
    std::memcpy(bytes.data(), ones.data(), bytes.size());
    checkpoint.tensors[name] = {WeightFormat::kF32, {kExpertsHidden}, bytes.data()};
  }
  void Experts(ExpertsForm form, const std::string& at, const std::string& name,
               std::int64_t outputs, std::int64_t inputs) {
    const TensorView stacked{WeightFormat::kQ8_0, {kExperts, outputs, inputs}, nullptr};
    auto& bytes = bytes_.emplace_back(stacked.bytes());
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    for (std::size_t i = 1; i < bytes.size(); i += 34) bytes[i] = std::byte{0x18};  // Scales.
    if (form == ExpertsForm::kStacked) {
      checkpoint.tensors[at + "experts." + name + ".weight"] = {stacked.format, stacked.shape,
                                                                bytes.data()};
      return;
    }
    for (int expert = 0; expert < kExperts; ++expert) {
      const std::size_t size = bytes.size() / kExperts;
      checkpoint.tensors[at + "experts." + std::to_string(expert) + "." + name + ".weight"] = {
          stacked.format, {outputs, inputs}, bytes.data() + expert * size};
    }
  }

  std::mt19937 random_{3};
  std::deque<std::vector<std::byte>> bytes_;
};

std::unique_ptr<Model> LoadExperts(const ExpertsCheckpoint& model, ExpertsKind kind,
                                   Backend* backend, ExpertsPlace experts = ExpertsPlace::kMemory) {
  const auto weights = LoadWeights(model.checkpoint, SmallExperts(kind), backend, {}, experts);
  EXPECT_TRUE(weights.ok()) << weights.error().message;
  return (*weights)->MakeModel(backend);
}

std::vector<float> ExpertsLogits(const ExpertsCheckpoint& checkpoint, ExpertsKind kind,
                                 std::unique_ptr<Backend> backend, std::size_t chunk,
                                 ExpertsPlace experts = ExpertsPlace::kMemory) {
  const auto model = LoadExperts(checkpoint, kind, backend.get(), experts);
  std::vector<Token> tokens;
  for (Token token = 0; token < 60; ++token) tokens.push_back(token * 37 % kExpertsVocabulary);
  SequenceRunner runner(model.get(), 60);
  std::vector<float> all;
  for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const std::size_t count = std::min(chunk, tokens.size() - begin);
    const float* logits = runner.Append(std::span(tokens).subspan(begin, count));
    all.insert(all.end(), logits, logits + count * kExpertsVocabulary);
  }
  return all;
}

TEST(ExpertsModel, EveryInstructionSetGivesTheLogitsOfPlainLoops) {
  for (const ExpertsKind kind : {ExpertsKind::kPlain, ExpertsKind::kAll}) {
    const ExpertsCheckpoint numbered(ExpertsForm::kNumbered, kind);
    const ExpertsCheckpoint stacked(ExpertsForm::kStacked, kind);
    const auto expected = ExpertsLogits(numbered, kind, MakePortableReference(), 60);
    EXPECT_NE(expected.front(), expected.back());
    EXPECT_EQ(ExpertsLogits(stacked, kind, MakePortableReference(), 60), expected);
    ThreadPool pool(AvailableCores());
    for (const cpu::QuantKernels* quant : AvailableQuantKernels()) {
      for (const std::size_t chunk : {1, 7, 60}) {
        for (ThreadPool* workers : {static_cast<ThreadPool*>(nullptr), &pool}) {
          auto backend = MakePortableCpuBackend(*PortableKernels().back(), *quant, workers);
          EXPECT_EQ(ExpertsLogits(stacked, kind, std::move(backend), chunk), expected)
              << quant->name << ", passes of " << chunk << " rows";
        }
      }
    }
  }
}

TEST(ExpertsModel, ExpertsInTheFileGiveTheLogitsOfPackedOnes) {
  constexpr auto kKind = ExpertsKind::kAll;
  const ExpertsCheckpoint numbered(ExpertsForm::kNumbered, kKind);
  const ExpertsCheckpoint stacked(ExpertsForm::kStacked, kKind);
  const auto expected = ExpertsLogits(stacked, kKind, MakePortableReference(), 60);
  ThreadPool pool(AvailableCores());
  for (const cpu::QuantKernels* quant : AvailableQuantKernels()) {
    for (const ExpertsCheckpoint* stored : {&numbered, &stacked}) {
      auto backend = MakePortableCpuBackend(*PortableKernels().back(), *quant, &pool);
      EXPECT_EQ(ExpertsLogits(*stored, kKind, std::move(backend), 7, ExpertsPlace::kFile), expected)
          << quant->name;
    }
  }
  for (const Precision precision : {Precision::kBF16, Precision::kF32}) {
    for (const BackendCase& each : BackendCases()) {
      EXPECT_EQ(ExpertsLogits(stacked, kKind, each.make(precision), 7, ExpertsPlace::kFile),
                ExpertsLogits(stacked, kKind, each.make(precision), 7))
          << each.name;
    }
  }
}

// What makes a folder's latent keys and values is made as it is read, but is no expert.
TEST(ExpertsModel, LatentKeysAndValuesAreNotKeptInTheFile) {
  const auto folder =
      std::filesystem::path(FORETOKEN_SOURCE_DIR) / "tests/golden/families/deepseek_v3";
  const auto checkpoint = OpenCheckpoint(folder, "");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const auto logits = [&](ExpertsPlace place) {
    const auto backend = MakeCpuBackend(*AvailableKernels().back(), nullptr, Precision::kBF16);
    const auto weights =
        LoadWeights(*checkpoint, *ReadModelConfig(*checkpoint), backend.get(), {}, place);
    EXPECT_TRUE(weights.ok()) << weights.error().message;
    const auto model = (*weights)->MakeModel(backend.get());
    const std::vector<Token> tokens = RandomTokens(20, model->config().vocabulary);
    SequenceRunner runner(model.get(), 20);
    const float* rows = runner.Append(tokens);
    return std::vector<float>(rows, rows + 20 * model->config().vocabulary);
  };
  EXPECT_EQ(logits(ExpertsPlace::kFile), logits(ExpertsPlace::kMemory));
}

TEST(ExpertsModel, OnlyWhatLiesInTheFileCanStayThere) {
  const auto refusal = [](const Checkpoint& checkpoint, const ModelConfig& config) {
    const Status checked = CheckWeights(checkpoint, config, ExpertsPlace::kFile);
    return checked.ok() ? "accepted" : checked.error().message;
  };
  const ExpertsCheckpoint plain(ExpertsForm::kStacked, ExpertsKind::kPlain);
  const ModelConfig config = SmallExperts(ExpertsKind::kPlain);
  EXPECT_EQ(refusal(plain.checkpoint, config), "accepted");
  ExpertsCheckpoint arranged(ExpertsForm::kStacked, ExpertsKind::kPlain);
  arranged.checkpoint.arranged["layers.0.experts.up.weight"] = {};
  EXPECT_THAT(refusal(arranged.checkpoint, config),
              testing::HasSubstr("layers.0.experts.up.weight does not lie there as it is"));
  ExpertsCheckpoint converted(ExpertsForm::kNumbered, ExpertsKind::kPlain);
  converted.checkpoint.requantized_from["layers.1.experts.3.down.weight"] = {};
  EXPECT_THAT(refusal(converted.checkpoint, config),
              testing::HasSubstr("layers.1.experts.3.down.weight is to be converted"));
  converted.checkpoint.requantized_from = {{"layers.0.q.weight", {}}};  // No expert's.
  EXPECT_EQ(refusal(converted.checkpoint, config), "accepted");
  ModelConfig dense = config;
  for (LayerSpec& layer : dense.layers) layer.mlp.routing = {};
  EXPECT_THAT(refusal(plain.checkpoint, dense), testing::HasSubstr("has no experts"));
}

TEST(ExpertsModel, ARowReadsTheExpertsThatItChooses) {
  const auto backend = MakePortableReference();
  for (const ExpertsKind kind : {ExpertsKind::kPlain, ExpertsKind::kAll}) {
    const ExpertsCheckpoint stored(ExpertsForm::kStacked, kind);
    const ModelConfig config = SmallExperts(kind);
    const auto model = LoadExperts(stored, kind, backend.get());
    const std::size_t each = FormatBytes(WeightFormat::kQ8_0, 3 * kWidth * kExpertsHidden);
    const std::size_t not_read = 2 * (kExperts - kChosen) * each;
    const MemoryNeeds needs = EstimateMemory(config, stored.checkpoint.tensors, *backend);
    EXPECT_EQ(needs.weight_bytes - needs.weight_bytes_per_pass, not_read);
    EXPECT_EQ(needs.weight_bytes_per_pass, model->weight_bytes());
    const auto in_file = LoadExperts(stored, kind, backend.get(), ExpertsPlace::kFile);
    const MemoryNeeds rest =
        EstimateMemory(config, stored.checkpoint.tensors, *backend, ExpertsPlace::kFile);
    EXPECT_EQ(rest.mapped_bytes, 2 * kExperts * each);
    EXPECT_EQ(rest.weight_bytes, needs.weight_bytes - rest.mapped_bytes);
    EXPECT_EQ(rest.weight_bytes_per_pass, needs.weight_bytes_per_pass);
    EXPECT_EQ(in_file->weight_bytes(), model->weight_bytes());
    std::int64_t elements = 0;
    for (const auto& [name, view] : stored.checkpoint.tensors) elements += view.elements();
    EXPECT_EQ(config.parameters(), elements);
  }
}

TEST(ExpertsModel, ExpertsThatAreMissingOrDifferAreNamed) {
  const auto backend = MakePortableReference();
  const ModelConfig config = SmallExperts();
  const auto refusal = [&](const ExpertsCheckpoint& model) {
    const Status checked = CheckWeights(model.checkpoint, config);
    return checked.ok() ? "accepted" : checked.error().message;
  };
  ExpertsCheckpoint lacking(ExpertsForm::kNumbered);
  lacking.checkpoint.tensors.erase("layers.1.experts.4.up.weight");
  EXPECT_THAT(refusal(lacking), testing::HasSubstr("lacks tensor layers.1.experts.4.up.weight"));
  ExpertsCheckpoint more(ExpertsForm::kNumbered);
  more.checkpoint.tensors["layers.1.experts.6.up.weight"] =
      more.checkpoint.tensors["layers.1.experts.5.up.weight"];
  EXPECT_THAT(refusal(more), testing::HasSubstr("layers.1.experts.6.up.weight"));
  ExpertsCheckpoint mixed(ExpertsForm::kNumbered);
  mixed.checkpoint.tensors["layers.0.experts.2.gate.weight"].format = WeightFormat::kQ5_1;
  EXPECT_THAT(refusal(mixed), testing::HasSubstr("must be alike"));
}

// Tensors that folders keep transposed are turned before they are quantised, and routers stay
// floats.
TEST(ExpertsModel, FoldersOfEachFamilyAreQuantisedAsTheyAreRead) {
  for (const std::string family : {"mixtral", "qwen3_moe", "granitemoe", "gpt_oss", "qwen2_moe",
                                   "granitemoeshared", "olmoe"}) {
    const auto folder =
        std::filesystem::path(FORETOKEN_SOURCE_DIR) / "tests/golden/families" / family;
    const auto plain = OpenCheckpoint(folder, "");
    const auto quantised = OpenCheckpoint(folder, "q8_0");
    ASSERT_TRUE(plain.ok() && quantised.ok()) << family;
    int matrices = 0;
    for (const auto& [name, tensor] : quantised->tensors) {
      if (name.ends_with(".router.weight") || name.ends_with(".shared_gate.weight")) {
        EXPECT_EQ(tensor.format, WeightFormat::kF32) << name;
      }
      if (name.find(".experts.") == std::string::npos || !name.ends_with(".weight")) continue;
      ++matrices;
      ASSERT_EQ(tensor.format, WeightFormat::kQ8_0) << name;
      const std::size_t count = tensor.elements();
      std::vector<float> expected(count);
      std::vector<float> values(count);
      LoadElements(plain->Read(name).view, 0, tensor.elements(), expected.data());
      LoadElements(quantised->Read(name).view, 0, tensor.elements(), values.data());
      float largest = 0;
      for (const float value : expected) largest = std::max(largest, std::fabs(value));
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_NEAR(values[i], expected[i], largest / 200) << name;
      }
    }
    EXPECT_GT(matrices, 0);
    const auto backend = MakePortableReference();
    const auto weights = LoadWeights(*quantised, *ReadModelConfig(*quantised), backend.get());
    EXPECT_TRUE(weights.ok()) << weights.error().message;
  }
}

}  // namespace
}  // namespace foretoken
