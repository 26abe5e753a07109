#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "backend/reference/reference_backend.h"
#include "base/temporary_testing.h"
#include "model/model_testing.h"
#include "weights/checkpoint.h"
#include "weights/weights_testing.h"

namespace foretoken {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

struct StoredTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// A tiny random Llama whose values F16 and BF16 hold exactly, to be changed and written by tests.
struct TinyModel {
  json config = {{"model_type", "llama"},      {"hidden_size", 16}, {"intermediate_size", 24},
                 {"num_hidden_layers", 2},     {"head_dim", 8},     {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},   {"vocab_size", 40},  {"max_position_embeddings", 64},
                 {"tie_word_embeddings", true}};
  std::map<std::string, StoredTensor> tensors;

  TinyModel() {
    Random("model.embed_tokens.weight", {40, 16});
    Random("model.norm.weight", {16});
    for (int layer = 0; layer < 2; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      Random(prefix + "input_layernorm.weight", {16});
      Random(prefix + "post_attention_layernorm.weight", {16});
      Random(prefix + "self_attn.q_proj.weight", {32, 16});
      Random(prefix + "self_attn.k_proj.weight", {16, 16});
      Random(prefix + "self_attn.v_proj.weight", {16, 16});
      Random(prefix + "self_attn.o_proj.weight", {16, 32});
      Random(prefix + "mlp.gate_proj.weight", {24, 16});
      Random(prefix + "mlp.up_proj.weight", {24, 16});
      Random(prefix + "mlp.down_proj.weight", {16, 24});
    }
  }

  void Random(const std::string& name, const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    for (const std::int64_t dimension : shape) count *= dimension;
    StoredTensor tensor{shape, {}};
    for (std::int64_t i = 0; i < count; ++i) {
      tensor.values.push_back((static_cast<float>(engine_() % 255) - 127) / 64);
    }
    tensors[name] = std::move(tensor);
  }

  void Write(const TemporaryFolder& folder, WeightFormat format = WeightFormat::kF32) const {
    folder.Write("config.json", config.dump());
    SafetensorsBuilder builder;
    for (const auto& [name, tensor] : tensors) {
      builder.Add(name, format, tensor.shape, tensor.values);
    }
    folder.Write("model.safetensors", builder.Build(/*unaligned=*/true));
  }

  void WriteSharded(const TemporaryFolder& folder) const {
    folder.Write("config.json", config.dump());
    SafetensorsBuilder builders[2];
    json map;
    int shard = 0;
    for (const auto& [name, tensor] : tensors) {
      shard = 1 - shard;
      builders[shard].Add(name, WeightFormat::kF32, tensor.shape, tensor.values);
      map[name] = std::to_string(shard) + ".safetensors";
    }
    folder.Write("0.safetensors", builders[0].Build());
    folder.Write("1.safetensors", builders[1].Build());
    folder.Write("model.safetensors.index.json", json{{"weight_map", map}}.dump());
  }

 private:
  std::mt19937 engine_{7};
};

// What checking without packing says.
Status Check(const TemporaryFolder& directory) {
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(directory.path()));
  FT_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(checkpoint));
  return CheckWeights(checkpoint, config);
}

// The logits after each of some tokens, or the error of loading.
Result<std::vector<float>> LoadAndRun(const TemporaryFolder& directory) {
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(directory.path()));
  FT_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(checkpoint));
  const auto backend = MakeReferenceBackend(Precision::kF32);
  FT_ASSIGN_OR_RETURN(const auto weights, LoadWeights(checkpoint, config, backend.get()));
  const auto model = weights->MakeModel(backend.get());
  SequenceRunner runner(model.get(), 5);
  const float* logits = runner.Append(std::vector<Token>{3, 1, 39, 0, 17});
  return std::vector<float>(logits, logits + 5 * config.vocabulary);
}

std::vector<float> LogitsOf(const TinyModel& tiny, WeightFormat format = WeightFormat::kF32) {
  const TemporaryFolder folder;
  tiny.Write(folder, format);
  auto logits = LoadAndRun(folder);
  EXPECT_TRUE(logits.ok()) << logits.error().message;
  EXPECT_TRUE(Check(folder).ok());
  return std::move(logits).value();
}

std::string ErrorWith(const std::function<void(TinyModel&)>& change) {
  TinyModel tiny;
  change(tiny);
  const TemporaryFolder folder;
  tiny.Write(folder);
  const auto logits = LoadAndRun(folder);
  const Status checked = Check(folder);
  EXPECT_EQ(checked.ok(), logits.ok());
  if (logits.ok()) return "no error";
  EXPECT_EQ(checked.error().message, logits.error().message);
  return logits.error().message;
}

TEST(LlamaLoadTest, DTypesAndShardsGiveTheSameLogits) {
  const TinyModel tiny;
  const std::vector<float> expected = LogitsOf(tiny);
  EXPECT_EQ(LogitsOf(tiny, WeightFormat::kF16), expected);
  EXPECT_EQ(LogitsOf(tiny, WeightFormat::kBF16), expected);
  const TemporaryFolder folder;
  tiny.WriteSharded(folder);
  const auto sharded = LoadAndRun(folder);
  ASSERT_TRUE(sharded.ok()) << sharded.error().message;
  EXPECT_EQ(*sharded, expected);
}

TEST(LlamaLoadTest, UntiedHeadIsUsed) {
  TinyModel tiny;
  std::vector<float> expected = LogitsOf(tiny);
  for (float& logit : expected) logit *= 2;
  tiny.config["tie_word_embeddings"] = false;
  StoredTensor head = tiny.tensors["model.embed_tokens.weight"];
  for (float& value : head.values) value *= 2;
  tiny.tensors["lm_head.weight"] = head;
  EXPECT_EQ(LogitsOf(tiny), expected);
}

TEST(LlamaLoadTest, GroupedHeadsEqualRepeatedHeads) {
  TinyModel tiny;
  const std::vector<float> expected = LogitsOf(tiny);
  tiny.config["num_key_value_heads"] = 4;
  for (auto& [name, tensor] : tiny.tensors) {
    if (name.find("k_proj") == std::string::npos && name.find("v_proj") == std::string::npos) {
      continue;
    }
    const auto at = tensor.values.begin();
    std::vector<float> repeated;
    for (const int head : {0, 0, 1, 1}) {
      repeated.insert(repeated.end(), at + head * 8 * 16, at + (head + 1) * 8 * 16);
    }
    tensor = {{32, 16}, repeated};
  }
  EXPECT_EQ(LogitsOf(tiny), expected);
}

TEST(LlamaLoadTest, RopeScalingChangesLogitsAfterTheFirst) {
  TinyModel tiny;
  const std::vector<float> plain = LogitsOf(tiny);
  tiny.config["rope_scaling"] = {{"type", "linear"}, {"factor", 2}};
  const std::vector<float> scaled = LogitsOf(tiny);
  EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + 40, scaled.begin()));
  EXPECT_FALSE(std::equal(plain.begin() + 40, plain.begin() + 80, scaled.begin() + 40));
}

TEST(LlamaLoadTest, NamesTheTensorThatIsWrong) {
  for (const auto& [name, tensor] : TinyModel().tensors) {
    const std::string missing = name;
    EXPECT_THAT(ErrorWith([&](TinyModel& tiny) { tiny.tensors.erase(missing); }),
                HasSubstr("lacks tensor " + missing + " of shape ["));
    EXPECT_THAT(
        ErrorWith([&](TinyModel& tiny) {
          StoredTensor& wrong = tiny.tensors[missing];
          wrong.shape = {1, static_cast<std::int64_t>(wrong.values.size())};
        }),
        AllOf(HasSubstr("tensor " + missing + " must have shape ["), HasSubstr("has [1, ")));
  }
  EXPECT_THAT(ErrorWith([](TinyModel& tiny) { tiny.config["tie_word_embeddings"] = false; }),
              HasSubstr("lacks tensor lm_head.weight of shape [40, 16]"));
  EXPECT_THAT(
      ErrorWith([](TinyModel& tiny) { tiny.Random("model.layers.0.self_attn.q_proj.bias", {32}); }),
      HasSubstr("is a bias"));
  EXPECT_THAT(ErrorWith([](TinyModel& tiny) { tiny.config["hidden_size"] = 32; }),
              HasSubstr("must have shape [40, 32] by config.json but has [40, 16]"));
}

}  // namespace
}  // namespace foretoken
