#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

#include "base/files/temporary_testing.h"
#include "core/backend/testing/reference_backend.h"
#include "core/model/families/family.h"
#include "core/model/families/read_config.h"
#include "core/model/model_testing.h"
#include "core/model/open_checkpoint.h"
#include "core/weights/checkpoint.h"
#include "core/weights/gguf/gguf_testing.h"
#include "core/weights/weights_testing.h"
#include "json/json.h"

namespace foretoken {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct StoredTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// As blocks of Q8_0 with the scale 1/64, which hold a tiny model's values exactly.
std::string InBlocks(const std::vector<float>& values) {
  constexpr std::string_view kScale("\x00\x24", 2);
  std::string blocks;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 32 == 0) blocks += kScale;
    blocks += static_cast<char>(static_cast<std::int8_t>(values[i] * 64));
  }
  return blocks;
}

// As GGUF files have the rows of q and k: element i of a head's first half, then of its second.
std::vector<float> Alternating(const StoredTensor& tensor, std::size_t head_dim) {
  const std::size_t width = tensor.shape[1];
  std::vector<float> rows;
  for (std::size_t row = 0; row < tensor.values.size() / width; ++row) {
    const std::size_t head = row / head_dim;
    const std::size_t in_head = row % head_dim / 2 + row % 2 * (head_dim / 2);
    const auto from =
        tensor.values.begin() + static_cast<std::ptrdiff_t>((head * head_dim + in_head) * width);
    rows.insert(rows.end(), from, from + static_cast<std::ptrdiff_t>(width));
  }
  return rows;
}

// A tiny random Llama whose values F16, BF16 and Q8_0 hold exactly, to be changed and written by
// tests.
struct TinyModel {
  Json config = {{"model_type", "llama"},      {"hidden_size", 32}, {"intermediate_size", 96},
                 {"num_hidden_layers", 2},     {"head_dim", 16},    {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},   {"vocab_size", 40},  {"max_position_embeddings", 64},
                 {"tie_word_embeddings", true}};
  std::map<std::string, StoredTensor> tensors;

  TinyModel() {
    Random("model.embed_tokens.weight", {40, 32});
    Random("model.norm.weight", {32});
    for (int layer = 0; layer < 2; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      Random(prefix + "input_layernorm.weight", {32});
      Random(prefix + "post_attention_layernorm.weight", {32});
      Random(prefix + "self_attn.q_proj.weight", {64, 32});
      Random(prefix + "self_attn.k_proj.weight", {32, 32});
      Random(prefix + "self_attn.v_proj.weight", {32, 32});
      Random(prefix + "self_attn.o_proj.weight", {32, 64});
      Random(prefix + "mlp.gate_proj.weight", {96, 32});
      Random(prefix + "mlp.up_proj.weight", {96, 32});
      Random(prefix + "mlp.down_proj.weight", {32, 96});
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

  // Matrices as F32 or Q8_0.
  void WriteGguf(const std::string& path, WeightFormat format) const {
    GgufBuilder builder;
    builder.Text("general.architecture", "llama");
    const std::pair<const char*, const char*> kSizes[] = {
        {"llama.embedding_length", "hidden_size"},
        {"llama.feed_forward_length", "intermediate_size"},
        {"llama.block_count", "num_hidden_layers"},
        {"llama.attention.head_count", "num_attention_heads"},
        {"llama.attention.head_count_kv", "num_key_value_heads"},
        {"llama.attention.key_length", "head_dim"},
        {"llama.context_length", "max_position_embeddings"}};
    for (const auto& [key, field] : kSizes) {
      builder.Key(key, GgufType::kUint32, config[field].get<std::uint32_t>());
    }
    builder.Key("llama.attention.layer_norm_rms_epsilon", GgufType::kFloat32, 1e-6F);
    for (const auto& [name, tensor] : tensors) {
      const bool rotated = name.find("q_proj.weight") != std::string::npos ||
                           name.find("k_proj.weight") != std::string::npos;
      const std::vector<float> values = rotated ? Alternating(tensor, 16) : tensor.values;
      const bool blocks = format == WeightFormat::kQ8_0 && tensor.shape.size() == 2;
      const std::string data = blocks ? InBlocks(values)
                                      : std::string(reinterpret_cast<const char*>(values.data()),
                                                    values.size() * sizeof(float));
      builder.Tensor(NameInFile(kLlama, true, OurName(kLlama, false, name)),
                     {tensor.shape.rbegin(), tensor.shape.rend()}, blocks ? 8 : 0, data);
    }
    builder.Write(path);
  }

  void WriteSharded(const TemporaryFolder& folder) const {
    folder.Write("config.json", config.dump());
    SafetensorsBuilder builders[2];
    Json map;
    int shard = 0;
    for (const auto& [name, tensor] : tensors) {
      shard = 1 - shard;
      builders[shard].Add(name, WeightFormat::kF32, tensor.shape, tensor.values);
      map[name] = std::to_string(shard) + ".safetensors";
    }
    folder.Write("0.safetensors", builders[0].Build());
    folder.Write("1.safetensors", builders[1].Build());
    folder.Write("model.safetensors.index.json", Json{{"weight_map", map}}.dump());
  }

 private:
  std::mt19937 engine_{7};
};

// What checking without packing says.
Status Check(const std::filesystem::path& path) {
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenCheckpoint(path, ""));
  FT_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(checkpoint));
  return CheckWeights(checkpoint, config);
}

// The logits after each of some tokens, or the error of loading.
Result<std::vector<float>> LoadAndRun(const std::filesystem::path& path) {
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenCheckpoint(path, ""));
  FT_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(checkpoint));
  const auto backend = MakeReferenceBackend(Precision::kF32);
  FT_ASSIGN_OR_RETURN(const auto weights, LoadWeights(checkpoint, config, backend.get()));
  const auto model = weights->MakeModel(backend.get());
  SequenceRunner runner(model.get(), 5);
  const float* logits = runner.Append(std::vector<Token>{3, 1, 39, 0, 17});
  return std::vector<float>(logits, logits + 5 * config.vocabulary);
}

std::vector<float> TinyLogits(const TinyModel& tiny, WeightFormat format = WeightFormat::kF32) {
  const TemporaryFolder folder;
  tiny.Write(folder, format);
  auto logits = LoadAndRun(folder.path());
  EXPECT_TRUE(logits.ok()) << logits.error().message;
  EXPECT_TRUE(Check(folder.path()).ok());
  return std::move(logits).value();
}

std::string ErrorWith(const std::function<void(TinyModel&)>& change) {
  TinyModel tiny;
  change(tiny);
  const TemporaryFolder folder;
  tiny.Write(folder);
  const auto logits = LoadAndRun(folder.path());
  const Status checked = Check(folder.path());
  EXPECT_EQ(checked.ok(), logits.ok());
  if (logits.ok()) return "no error";
  EXPECT_EQ(checked.error().message, logits.error().message);
  return logits.error().message;
}

TEST(LoadWeightsTest, DTypesAndShardsGiveTheSameLogits) {
  const TinyModel tiny;
  const std::vector<float> expected = TinyLogits(tiny);
  EXPECT_EQ(TinyLogits(tiny, WeightFormat::kF16), expected);
  EXPECT_EQ(TinyLogits(tiny, WeightFormat::kBF16), expected);
  const TemporaryFolder folder;
  tiny.WriteSharded(folder);
  const auto sharded = LoadAndRun(folder.path());
  ASSERT_TRUE(sharded.ok()) << sharded.error().message;
  EXPECT_EQ(*sharded, expected);
}

TEST(LoadWeightsTest, GgufFilesGiveTheSameLogits) {
  TinyModel tiny;
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "m.gguf";
  const auto logits_of_file = [&](WeightFormat format) {
    tiny.WriteGguf(path.string(), format);
    const auto logits = LoadAndRun(path);
    EXPECT_TRUE(logits.ok()) << logits.error().message;
    return *logits;
  };
  const std::vector<float> tied = TinyLogits(tiny);
  EXPECT_EQ(logits_of_file(WeightFormat::kF32), tied);
  EXPECT_EQ(logits_of_file(WeightFormat::kQ8_0), tied);
  tiny.config["tie_word_embeddings"] = false;
  tiny.Random("lm_head.weight", {40, 32});
  const std::vector<float> untied = TinyLogits(tiny);
  EXPECT_NE(untied, tied);
  EXPECT_EQ(logits_of_file(WeightFormat::kQ8_0), untied);
}

TEST(LoadWeightsTest, GgufFilesNameTheirTensorsThemselves) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "m.gguf";
  TinyModel missing;
  missing.tensors.erase("model.layers.1.mlp.up_proj.weight");
  missing.WriteGguf(path.string(), WeightFormat::kQ8_0);
  EXPECT_EQ(LoadAndRun(path).error().message,
            path.string() + ": lacks tensor blk.1.ffn_up.weight of shape [96, 32]");
  TinyModel wrong;
  wrong.Random("model.layers.0.self_attn.o_proj.weight", {64, 32});
  wrong.WriteGguf(path.string(), WeightFormat::kQ8_0);
  EXPECT_EQ(LoadAndRun(path).error().message,
            path.string() +
                ": tensor blk.0.attn_output.weight must have shape [32, 64] by the metadata but "
                "has [64, 32]");
}

TEST(LoadWeightsTest, TellsHowMuchHasBeenRead) {
  const TemporaryFolder folder;
  TinyModel().Write(folder);
  const auto checkpoint = OpenCheckpoint(folder.path(), "");
  const auto config = ReadModelConfig(*checkpoint);
  const auto backend = MakeReferenceBackend(Precision::kF32);
  std::vector<std::size_t> steps;
  std::size_t total = 0;
  ASSERT_TRUE(
      LoadWeights(*checkpoint, *config, backend.get(), [&](std::size_t read, std::size_t all) {
        EXPECT_TRUE(steps.empty() || read > steps.back());
        steps.push_back(read);
        total = all;
      }).ok());
  EXPECT_EQ(steps.size(), 1 + 2 + 2 * 6);  // Embedding, norm; a layer's norms and matrices.
  EXPECT_EQ(steps.front(), 0);
  EXPECT_EQ(steps.back(), total);
}

TEST(LoadWeightsTest, UntiedHeadIsUsed) {
  TinyModel tiny;
  std::vector<float> expected = TinyLogits(tiny);
  for (float& logit : expected) logit *= 2;
  tiny.config["tie_word_embeddings"] = false;
  StoredTensor head = tiny.tensors["model.embed_tokens.weight"];
  for (float& value : head.values) value *= 2;
  tiny.tensors["lm_head.weight"] = head;
  EXPECT_EQ(TinyLogits(tiny), expected);
}

// Whatever config.json says of it, but for a copy of the embedding table.
TEST(LoadWeightsTest, AHeadThatIsThereIsUsed) {
  TinyModel tiny;
  std::vector<float> expected = TinyLogits(tiny);
  tiny.tensors["lm_head.weight"] = tiny.tensors["model.embed_tokens.weight"];
  EXPECT_EQ(TinyLogits(tiny), expected);
  const TemporaryFolder folder;
  tiny.Write(folder);
  const auto checkpoint = OpenCheckpoint(folder.path(), "");
  EXPECT_EQ(checkpoint->Find("head.weight"), nullptr);
  EXPECT_TRUE(ReadModelConfig(*checkpoint)->tied_embeddings);
  for (float& value : tiny.tensors["lm_head.weight"].values) value *= 2;
  for (float& logit : expected) logit *= 2;
  EXPECT_EQ(TinyLogits(tiny), expected);
}

TEST(LoadWeightsTest, NamesTheTensorThatIsNotFinite) {
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const auto& [name, tensor] : TinyModel().tensors) {
      TinyModel tiny;
      const std::size_t at = tensor.values.size() - 2;
      tiny.tensors[name].values[at] = wrong;
      const TemporaryFolder folder;
      tiny.Write(folder, WeightFormat::kBF16);
      const auto logits = LoadAndRun(folder.path());
      ASSERT_FALSE(logits.ok()) << name;
      EXPECT_THAT(
          logits.error().message,
          AllOf(HasSubstr("of tensor " + name + " is infinite or NaN"), HasSubstr("weight ")));
    }
  }
}

TEST(LoadWeightsTest, GroupedHeadsEqualRepeatedHeads) {
  TinyModel tiny;
  const std::vector<float> expected = TinyLogits(tiny);
  tiny.config["num_key_value_heads"] = 4;
  for (auto& [name, tensor] : tiny.tensors) {
    if (name.find("k_proj") == std::string::npos && name.find("v_proj") == std::string::npos) {
      continue;
    }
    const auto at = tensor.values.begin();
    std::vector<float> repeated;
    for (const int head : {0, 0, 1, 1}) {
      repeated.insert(repeated.end(), at + head * 16 * 32, at + (head + 1) * 16 * 32);
    }
    tensor = {{64, 32}, repeated};
  }
  EXPECT_EQ(TinyLogits(tiny), expected);
}

TEST(LoadWeightsTest, RopeScalingChangesLogitsAfterTheFirst) {
  TinyModel tiny;
  const std::vector<float> plain = TinyLogits(tiny);
  tiny.config["rope_scaling"] = {{"type", "linear"}, {"factor", 2}};
  const std::vector<float> scaled = TinyLogits(tiny);
  EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + 40, scaled.begin()));
  EXPECT_FALSE(std::equal(plain.begin() + 40, plain.begin() + 80, scaled.begin() + 40));
}

TEST(LoadWeightsTest, NamesTheTensorThatIsWrong) {
  for (const auto& [name, tensor] : TinyModel().tensors) {
    const std::string missing = name;
    EXPECT_THAT(ErrorWith([&](TinyModel& tiny) { tiny.tensors.erase(missing); }),
                HasSubstr("lacks tensor " + missing + " of shape ["));
    EXPECT_THAT(
        ErrorWith([&](TinyModel& tiny) {
          StoredTensor& wrong = tiny.tensors[missing];
          wrong.shape = {1, std::ssize(wrong.values)};
        }),
        AllOf(HasSubstr("tensor " + missing + " must have shape ["), HasSubstr("has [1, ")));
  }
  EXPECT_THAT(ErrorWith([](TinyModel& tiny) { tiny.config["tie_word_embeddings"] = false; }),
              HasSubstr("lacks tensor lm_head.weight of shape [40, 32]"));
  EXPECT_THAT(
      ErrorWith([](TinyModel& tiny) { tiny.Random("model.layers.0.self_attn.q_proj.bias", {64}); }),
      HasSubstr("is a bias"));
  EXPECT_THAT(ErrorWith([](TinyModel& tiny) { tiny.config["hidden_size"] = 64; }),
              HasSubstr("must have shape [40, 64] by config.json but has [40, 32]"));
}

}  // namespace
}  // namespace foretoken
