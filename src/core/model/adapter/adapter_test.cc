#include "core/model/adapter/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/weights/gguf/gguf_file.h"
#include "core/weights/gguf/gguf_testing.h"
#include "core/weights/safetensors.h"
#include "core/weights/weights_testing.h"
#include "json/json.h"

namespace foretoken {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two layers, hidden 4, heads of 2: queries of 4 outputs, keys and values of 2.
ModelConfig AdaptedConfig() {
  ModelConfig config = LlamaConfig({.hidden = 4,
                                    .intermediate = 6,
                                    .layers = 2,
                                    .heads = 2,
                                    .kv_heads = 1,
                                    .head_dim = 2,
                                    .vocabulary = 8,
                                    .max_positions = 16});
  config.family = "llama";
  return config;
}

constexpr const char* kQ = "base_model.model.model.layers.1.self_attn.q_proj";
constexpr const char* kK = "base_model.model.model.layers.1.self_attn.k_proj";

// An adapter as PEFT saves it, in memory.
class PeftFiles {
 public:
  void Add(const std::string& name, const std::vector<std::int64_t>& shape,
           const std::vector<float>& values) {
    builder_.Add(name, WeightFormat::kF32, shape, values);
  }
  /// Factors of rank 1.
  void AddPair(const std::string& module, const std::vector<float>& down,
               const std::vector<float>& up) {
    Add(module + ".lora_A.weight", {1, std::ssize(down)}, down);
    Add(module + ".lora_B.weight", {std::ssize(up), 1}, up);
  }

  Result<Adapter> Read(const ModelConfig& model = AdaptedConfig()) {
    file_ = builder_.Build();
    FT_ASSIGN_OR_RETURN(const FileTensors holds,
                        ParseSafetensors(std::as_bytes(std::span(file_)), "weights"));
    FT_ASSIGN_OR_RETURN(
        AdapterFile file,
        PeftAdapter(holds.tensors, config.dump(), "adapter_config.json", *FamilyNamed("llama")));
    file.path = "here";
    return MakeAdapter(file, model);
  }

  Json config = {{"peft_type", "LORA"}, {"r", 1}, {"lora_alpha", 2}};

 private:
  SafetensorsBuilder builder_;
  std::string file_;
};

std::string AdapterError(const Result<Adapter>& adapter) {
  return adapter.ok() ? "none" : adapter.error().message;
}

const LowRank& QkvOf(const Result<Adapter>& adapter) {
  return adapter.value().layers[1][static_cast<std::size_t>(AdaptedMatrix::kQkv)];
}

TEST(AdapterTest, FactorsOfOneMatrixLieBesideEachOther) {
  PeftFiles files;
  files.AddPair(kQ, {1, 2, 3, 4}, {5, 6, 7, 8});
  files.AddPair(kK, {-1, -2, -3, -4}, {9, 10});
  const auto adapter = files.Read();
  ASSERT_TRUE(adapter.ok()) << adapter.error().message;
  EXPECT_EQ(adapter->layers[0][0].rank, 0);
  const LowRank& qkv = QkvOf(adapter);
  EXPECT_EQ(qkv.rank, 2);
  // Keys come first by name. Outputs are four of queries, two of keys and two of values.
  EXPECT_THAT(qkv.down, ElementsAre(-1, -2, -3, -4, 1, 2, 3, 4));
  EXPECT_THAT(qkv.up, ElementsAre(0, 10, 0, 12, 0, 14, 0, 16, 18, 0, 20, 0, 0, 0, 0, 0));
}

TEST(AdapterTest, ScalesFollowThePatternsAndTheRoot) {
  PeftFiles files;
  files.AddPair(kQ, {1, 0, 0, 0}, {1, 0, 0, 0});
  files.config["alpha_pattern"] = {{"layers\\.1.self_attn.q_proj", 5}, {"proj", 7}};
  EXPECT_EQ(QkvOf(files.Read()).up[0], 5);
  files.config["alpha_pattern"] = {{"k_proj", 5}};
  EXPECT_EQ(QkvOf(files.Read()).up[0], 2);
  PeftFiles wide;
  wide.Add(std::string(kQ) + ".lora_A.weight", {2, 4}, std::vector<float>(8, 1));
  wide.Add(std::string(kQ) + ".lora_B.weight", {4, 2}, std::vector<float>(8, 1));
  wide.config["rank_pattern"] = {{"q_proj", 2}};
  EXPECT_EQ(QkvOf(wide.Read()).up[0], 1);
  wide.config["use_rslora"] = true;
  EXPECT_EQ(QkvOf(wide.Read()).up[0], static_cast<float>(2 / std::sqrt(2.0)));
  wide.config.erase("rank_pattern");
  EXPECT_THAT(AdapterError(wide.Read()),
              HasSubstr("says rank 1 for model.layers.1.self_attn.q_proj"));
}

TEST(AdapterTest, ConfigurationsOfMoreThanFactorsAreRefused) {
  const std::pair<const char*, Json> cases[] = {{"use_dora", true},
                                                {"fan_in_fan_out", true},
                                                {"lora_bias", true},
                                                {"bias", "lora_only"},
                                                {"modules_to_save", {"lm_head"}},
                                                {"target_parameters", {"mlp.experts.down_proj"}},
                                                {"alora_invocation_tokens", {1, 2}},
                                                {"init_lora_weights", "pissa_niter_4"},
                                                {"peft_type", "IA3"},
                                                {"r", 0},
                                                {"alpha_pattern", {{"layers\\.[01]\\.q_proj", 3}}},
                                                {"rank_pattern", {{"q_proj", "3"}}}};
  for (const auto& [name, value] : cases) {
    PeftFiles files;
    files.AddPair(kQ, {1, 0, 0, 0}, {1, 0, 0, 0});
    EXPECT_EQ(AdapterError(files.Read()), "none");
    files.config[name] = value;
    EXPECT_THAT(AdapterError(files.Read()),
                testing::AllOf(HasSubstr("adapter_config.json: "), HasSubstr(name)));
  }
}

TEST(AdapterTest, TensorsThatTheModelDoesNotHaveAreRefused) {
  const auto refused = [](const std::string& module, std::int64_t inputs, std::int64_t outputs) {
    PeftFiles files;
    files.AddPair("base_model.model." + module, std::vector<float>(inputs),
                  std::vector<float>(outputs));
    return AdapterError(files.Read());
  };
  EXPECT_THAT(refused("model.layers.0.mlp.up_proj", 4, 6), "none");
  EXPECT_THAT(refused("model.layers.2.mlp.up_proj", 4, 6), HasSubstr("but the model has 2 layers"));
  EXPECT_THAT(refused("model.layers.0.mlp.up_proj", 4, 5),
              HasSubstr("of 4 inputs and 5 outputs, but there it has 4 and 6"));
  EXPECT_THAT(refused("model.layers.0.mlp.mix_proj", 4, 6),
              HasSubstr("changes model.layers.0.mlp.mix_proj, which a llama model does not have"));
  EXPECT_THAT(refused("lm_head", 4, 8), HasSubstr("lm_head, which adapters cannot change here"));
  EXPECT_THAT(refused("model.layers.0.input_layernorm", 4, 4),
              HasSubstr("change only o, q, k, v, qkv, gate, up, gate_up, down here"));
}

TEST(AdapterTest, LayersThatAreNotPlainAttentionKeepWhatAdaptersCannotChange) {
  const auto error_of = [](const std::string& module, std::size_t outputs,
                           void (*change)(LayerSpec*)) {
    ModelConfig config = AdaptedConfig();
    for (LayerSpec& layer : config.layers) change(&layer);
    PeftFiles files;
    files.AddPair("base_model.model.model.layers.0." + module, std::vector<float>(4),
                  std::vector<float>(outputs));
    return AdapterError(files.Read(config));
  };
  const auto gated = [](LayerSpec* layer) { layer->attention.output_gate = true; };
  EXPECT_THAT(error_of("self_attn.q_proj", 8, gated), HasSubstr("only o, k, v, gate"));
  EXPECT_EQ(error_of("self_attn.k_proj", 2, gated), "none");
  const auto recurrent = [](LayerSpec* layer) {
    layer->attention = {};
    layer->delta.key_heads = 1;
  };
  EXPECT_THAT(error_of("self_attn.q_proj", 4, recurrent),
              HasSubstr("only gate, up, gate_up, down here"));
  EXPECT_EQ(error_of("mlp.up_proj", 6, recurrent), "none");
  const auto sparse = [](LayerSpec* layer) { layer->mlp.routing = {.experts = 4, .chosen = 2}; };
  EXPECT_THAT(error_of("mlp.up_proj", 6, sparse), HasSubstr("only o, q, k, v, qkv here"));
}

TEST(AdapterTest, FactorsWithoutTheirOtherAreRefused) {
  PeftFiles half;
  half.Add(std::string(kQ) + ".lora_A.weight", {1, 4}, {1, 2, 3, 4});
  EXPECT_THAT(AdapterError(half.Read()),
              HasSubstr("lacks the factor B for model.layers.1.self_attn"));
  PeftFiles unlike;
  unlike.Add(std::string(kQ) + ".lora_A.weight", {1, 4}, {1, 2, 3, 4});
  unlike.Add(std::string(kQ) + ".lora_B.weight", {4, 2}, std::vector<float>(8));
  EXPECT_THAT(AdapterError(unlike.Read()), HasSubstr("the factor A is of rank 1 and B of rank 2"));
  PeftFiles other;
  other.AddPair(kQ, {1, 2, 3, 4}, {1, 2, 3, 4});
  other.Add(std::string(kQ) + ".lora_magnitude_vector", {4}, {1, 1, 1, 1});
  EXPECT_THAT(AdapterError(other.Read()), HasSubstr("lora_magnitude_vector' is no factor"));
  EXPECT_THAT(AdapterError(PeftFiles().Read()), HasSubstr("has no factors"));
}

std::string Bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

Result<Adapter> ReadGguf(const GgufBuilder& builder) {
  const std::string file = builder.File();
  FT_ASSIGN_OR_RETURN(const GgufContents contents,
                      ParseGguf(std::as_bytes(std::span(file)), "adapter.gguf"));
  FT_ASSIGN_OR_RETURN(AdapterFile adapter, GgufAdapter(contents.tensors, contents.metadata,
                                                       "adapter.gguf", *FamilyNamed("llama")));
  adapter.alternating_heads = true;
  return MakeAdapter(adapter, AdaptedConfig());
}

GgufBuilder GgufFileOf(std::string_view architecture, float alpha) {
  GgufBuilder builder;
  builder.Text("general.type", "adapter");
  builder.Text("adapter.type", "lora");
  builder.Text("general.architecture", architecture);
  builder.Key("adapter.lora.alpha", GgufType::kFloat32, alpha);
  builder.Tensor("blk.1.attn_q.weight.lora_a", {4, 1}, 0, Bytes({1, 2, 3, 4}));
  builder.Tensor("blk.1.attn_q.weight.lora_b", {1, 4}, 0, Bytes({5, 6, 7, 8}));
  return builder;
}

TEST(AdapterTest, GgufFilesAreRead) {
  const auto adapter = ReadGguf(GgufFileOf("llama", 2));
  ASSERT_TRUE(adapter.ok()) << adapter.error().message;
  EXPECT_THAT(QkvOf(adapter).down, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(QkvOf(adapter).up, ElementsAre(10, 12, 14, 16, 0, 0, 0, 0));
  EXPECT_EQ(QkvOf(ReadGguf(GgufFileOf("llama", 0))).up[0], 5);
  EXPECT_THAT(AdapterError(ReadGguf(GgufFileOf("qwen2", 2))),
              HasSubstr("general.architecture is 'qwen2' but must be 'llama'"));
  EXPECT_THAT(AdapterError(ReadGguf(GgufBuilder())), HasSubstr("general.type is ''"));
}

TEST(AdapterTest, FingerprintsTellAdaptersApart) {
  const auto read = [](float value) {
    PeftFiles files;
    files.AddPair(kQ, {1, 0, 0, 0}, {value, 0, 0, 0});
    return files.Read().value().fingerprint;
  };
  EXPECT_EQ(read(1), read(1));
  EXPECT_NE(read(1), read(2));
}

}  // namespace
}  // namespace foretoken
