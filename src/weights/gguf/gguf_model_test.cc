#include "weights/gguf/gguf_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/temporary_testing.h"
#include "tensor/tensor_testing.h"
#include "weights/gguf/gguf_file.h"
#include "weights/gguf/gguf_testing.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kF32 = 0;

// A file of a model of width 8 with 5 tokens, but for the key that is left out.
GgufBuilder Model(std::string_view without = "", std::string_view architecture = "llama") {
  GgufBuilder builder;
  builder.Text("general.architecture", architecture);
  const std::pair<std::string_view, std::uint32_t> kNumbers[] = {
      {"llama.embedding_length", 8},
      {"llama.feed_forward_length", 16},
      {"llama.block_count", 2},
      {"llama.attention.head_count", 4},
      {"llama.attention.head_count_kv", 2},
      {"llama.context_length", 64},
      {"llama.rope.dimension_count", 2},
      {"tokenizer.ggml.bos_token_id", 1},
      {"tokenizer.ggml.eos_token_id", 2},
  };
  for (const auto& [key, value] : kNumbers) {
    if (key != without) builder.Key(key, GgufType::kUint32, value);
  }
  builder.Key("llama.attention.layer_norm_rms_epsilon", GgufType::kFloat32, 1e-5F);
  if (without != "llama.rope.freq_base") {
    builder.Key("llama.rope.freq_base", GgufType::kFloat32, 500000.0F);
  }
  builder.Tensor("token_embd.weight", {8, 5}, kF32, std::string(160, '\0'));
  return builder;
}

Result<nlohmann::json> Config(const GgufBuilder& builder) {
  const std::string file = builder.File();
  FT_ASSIGN_OR_RETURN(const GgufContents contents,
                      ParseGguf(std::as_bytes(std::span(file)), "m.gguf"));
  FT_ASSIGN_OR_RETURN(const std::string text,
                      ConfigFromGguf(contents.metadata, contents.tensors, "m.gguf"));
  return nlohmann::json::parse(text);
}
std::string Refusal(const GgufBuilder& builder) {
  const auto config = Config(builder);
  return config.ok() ? "accepted" : config.error().message;
}

TEST(GgufModel, TensorsHaveTheNamesOfFolders) {
  EXPECT_EQ(CanonicalName("token_embd.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(CanonicalName("output.weight"), "lm_head.weight");
  EXPECT_EQ(CanonicalName("blk.31.ffn_gate.weight"), "model.layers.31.mlp.gate_proj.weight");
  EXPECT_EQ(CanonicalName("blk.0.attn_output.weight"), "model.layers.0.self_attn.o_proj.weight");
  for (const char* other : {"blk.x.attn_q.weight", "blk.-1.attn_q.weight", "blk.1", "blk.1.other",
                            "blk.01.attn_q.weight", "rope_freqs.weight", ""}) {
    EXPECT_EQ(CanonicalName(other), "") << other;
  }
  for (const char* name : {"token_embd.weight", "blk.7.attn_k.bias", "output_norm.weight"}) {
    EXPECT_EQ(GgufName(CanonicalName(name)), name);
  }
  EXPECT_EQ(GgufName("another.weight"), "another.weight");
}

TEST(GgufModel, AFileIsACheckpoint) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "m.gguf").string();
  GgufBuilder builder = Model();
  const float norm[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  builder.Tensor("blk.1.attn_norm.weight", {8}, kF32,
                 std::string_view(reinterpret_cast<const char*>(norm), sizeof(norm)));
  const float factor = 2;
  builder.Tensor("rope_freqs.weight", {1}, kF32,
                 std::string_view(reinterpret_cast<const char*>(&factor), sizeof(factor)));
  builder.Write(path);
  auto opened = Checkpoint::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const Checkpoint moved = std::move(opened).value();
  EXPECT_THAT(moved.config.json, HasSubstr("factors"));
  EXPECT_EQ(moved.generation_config.json, "");
  EXPECT_TRUE(moved.alternating_heads);
  EXPECT_EQ(moved.tensors.size(), 2U);
  const TensorView* view = moved.Find("model.layers.1.input_layernorm.weight");
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(LoadElement(*view, 7), 8);
  EXPECT_EQ(moved.NameInFile("model.layers.1.input_layernorm.weight"), "blk.1.attn_norm.weight");
  std::string architecture;
  EXPECT_TRUE(moved.gguf->String("general.architecture", &architecture).ok());
  EXPECT_EQ(architecture, "llama");

  builder.Tensor("blk.1.attn_q_norm.weight", {8}, kF32,
                 std::string_view(reinterpret_cast<const char*>(norm), sizeof(norm)));
  builder.Write(path);
  EXPECT_THAT(Checkpoint::Open(path).error().message,
              HasSubstr("m.gguf: has tensor 'blk.1.attn_q_norm.weight', which is none of a Llama"));
}

TEST(GgufModel, MetadataAreAConfiguration) {
  const auto config = Config(Model());
  ASSERT_TRUE(config.ok()) << config.error().message;
  const auto expected = nlohmann::json::parse(R"({
      "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8,
      "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "max_position_embeddings": 64, "vocab_size": 5,
      "bos_token_id": 1, "eos_token_id": 2, "rms_norm_eps": 1e-5, "rope_theta": 500000,
      "tie_word_embeddings": true})");
  EXPECT_EQ(*config, expected) << config->dump(2);
}

TEST(GgufModel, AWindowOfAttentionIsSeen) {
  GgufBuilder builder = Model();
  builder.Key("llama.attention.sliding_window", GgufType::kUint32, std::uint32_t{32});
  EXPECT_EQ((*Config(builder))["sliding_window"], 32);
}

TEST(GgufModel, AnLmHeadOfItsOwnIsSeen) {
  GgufBuilder builder = Model();
  builder.Tensor("output.weight", {8, 5}, kF32, std::string(160, '\0'));
  EXPECT_EQ((*Config(builder))["tie_word_embeddings"], false);
}

TEST(GgufModel, RotaryFactorsAreRead) {
  GgufBuilder builder = Model();
  const float factor = 8;
  builder.Tensor("rope_freqs.weight", {1}, kF32,
                 std::string_view(reinterpret_cast<const char*>(&factor), sizeof(factor)));
  EXPECT_EQ((*Config(builder))["rope_scaling"].dump(), R"({"factors":[8.0],"type":"factors"})");
}

TEST(GgufModel, DefectsAreNamedByTheirKeys) {
  for (const char* key :
       {"llama.embedding_length", "llama.feed_forward_length", "llama.block_count",
        "llama.attention.head_count", "llama.context_length"}) {
    EXPECT_EQ(Refusal(Model(key)), std::string("m.gguf: lacks the key ") + key);
  }
  EXPECT_THAT(Refusal(Model("", "mamba")), HasSubstr("is of architecture 'mamba'"));
  EXPECT_THAT(Refusal(GgufBuilder()), HasSubstr("is of architecture ''"));
  GgufBuilder text = Model("llama.block_count");
  text.Text("llama.block_count", "two");
  EXPECT_THAT(Refusal(text), HasSubstr("llama.block_count must be an integer"));
  GgufBuilder yarn = Model();
  yarn.Text("llama.rope.scaling.type", "yarn");
  EXPECT_THAT(Refusal(yarn),
              HasSubstr("llama.rope.scaling.type is yarn, but only none and linear"));
  for (const float base : {0.0F, -1.0F, std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN()}) {
    GgufBuilder odd = Model("llama.rope.freq_base");
    odd.Key("llama.rope.freq_base", GgufType::kFloat32, base);
    EXPECT_THAT(Refusal(odd), HasSubstr("llama.rope.freq_base is "));
  }
  GgufBuilder part = Model("llama.rope.dimension_count");
  part.Key("llama.rope.dimension_count", GgufType::kUint32, std::uint32_t{1});
  EXPECT_THAT(Refusal(part), HasSubstr("heads have 2 dimensions"));
}

}  // namespace
}  // namespace foretoken
