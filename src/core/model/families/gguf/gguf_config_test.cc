#include "core/model/families/gguf/gguf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/files/temporary_testing.h"
#include "core/model/open_checkpoint.h"
#include "core/tensor/tensor_testing.h"
#include "core/weights/gguf/gguf_file.h"
#include "core/weights/gguf/gguf_testing.h"
#include "json/json.h"

namespace foretoken {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kF32 = 0;

// A file of a model of width 8 with 5 tokens, but for the key that is left out.
GgufBuilder ModelFile(std::string_view without = "", std::string_view architecture = "llama") {
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

Result<Json> ConfigOf(const GgufBuilder& builder) {
  const std::string file = builder.File();
  FT_ASSIGN_OR_RETURN(const GgufContents contents,
                      ParseGguf(std::as_bytes(std::span(file)), "m.gguf"));
  FT_ASSIGN_OR_RETURN(const std::string text,
                      ConfigFromGguf(contents.metadata, contents.tensors, "m.gguf"));
  return Json::Parse(text);
}
std::string Refusal(const GgufBuilder& builder) {
  const auto config = ConfigOf(builder);
  return config.ok() ? "accepted" : config.error().message;
}

TEST(GgufConfig, TensorsHaveOurNames) {
  const auto ours = [](const char* name) { return OurName(kLlama, /*gguf=*/true, name); };
  EXPECT_EQ(ours("token_embd.weight"), "embedding.weight");
  EXPECT_EQ(ours("output.weight"), "head.weight");
  EXPECT_EQ(ours("blk.31.ffn_gate.weight"), "layers.31.gate.weight");
  EXPECT_EQ(ours("blk.0.attn_output.bias"), "layers.0.o.bias");
  for (const char* other : {"blk.x.attn_q.weight", "blk.-1.attn_q.weight", "blk.1", "blk.1.other",
                            "blk.01.attn_q.weight", "rope_freqs.weight", "attn_q.weight", ""}) {
    EXPECT_EQ(ours(other), "") << other;
  }
  for (const Family* family : Families()) {
    for (const char* name : {"token_embd.weight", "blk.7.attn_k.bias", "output_norm.weight"}) {
      EXPECT_EQ(NameInFile(*family, true, OurName(*family, true, name)), name);
      const std::string in_folder = NameInFile(*family, false, OurName(*family, true, name));
      EXPECT_EQ(OurName(*family, false, in_folder), OurName(*family, true, name));
    }
  }
  EXPECT_EQ(OurName(kLlama, false, "model.layers.2.post_attention_layernorm.weight"),
            "layers.2.mlp_norm.weight");
  EXPECT_EQ(OurName(kGemma2, false, "model.layers.2.post_attention_layernorm.weight"),
            "layers.2.attention_post_norm.weight");
  EXPECT_EQ(OurName(kGemma3, false, "model.language_model.layers.2.mlp.up_proj.weight"),
            "layers.2.up.weight");
  EXPECT_EQ(OurName(kGemma3, false, "model.vision_tower.layers.2.mlp.up_proj.weight"), "");
}

TEST(GgufConfig, ModelsWithExpertsHaveAFamilyAndNames) {
  GgufBuilder builder = ModelFile();
  builder.Key("llama.expert_count", GgufType::kUint32, std::uint32_t{8});
  builder.Key("llama.expert_used_count", GgufType::kUint32, std::uint32_t{2});
  const auto config = ConfigOf(builder);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->at("model_type"), "mixtral");
  EXPECT_EQ(config->at("num_local_experts"), 8);
  EXPECT_EQ(config->at("num_experts_per_tok"), 2);
  EXPECT_EQ(ConfigOf(ModelFile())->at("model_type"), "llama");
  // Layers have experts where they have a router.
  EXPECT_EQ(config->at("mlp_only_layers"), Json({0, 1}));
  builder.Tensor("blk.1.ffn_gate_inp.weight", {8, 8}, kF32, std::string(256, '\0'));
  EXPECT_EQ(ConfigOf(builder)->at("mlp_only_layers"), Json::array({0}));
  EXPECT_FALSE(ConfigOf(ModelFile())->contains("mlp_only_layers"));

  const auto same = [](const Family& family, bool gguf, std::string_view theirs,
                       std::string_view ours) {
    EXPECT_EQ(OurName(family, gguf, theirs), ours);
    EXPECT_EQ(NameInFile(family, gguf, ours), theirs);
  };
  same(kMixtral, true, "blk.1.ffn_down_exps.weight", "layers.1.experts.down.weight");
  same(kMixtral, true, "blk.1.ffn_up.7.weight", "layers.1.experts.7.up.weight");
  same(kMixtral, false, "model.layers.0.block_sparse_moe.experts.12.w3.weight",
       "layers.0.experts.12.up.weight");
  same(kQwen3Moe, false, "model.layers.0.mlp.experts.3.gate_proj.weight",
       "layers.0.experts.3.gate.weight");
  same(kGraniteMoe, false, "model.layers.0.block_sparse_moe.input_linear.weight",
       "layers.0.experts.gate_up.weight");
  same(kGptOss, true, "blk.0.ffn_gate_exps.bias", "layers.0.experts.gate.bias");
  same(kGptOss, false, "model.layers.0.self_attn.sinks", "layers.0.sinks.weight");
  same(kGptOss, true, "blk.0.attn_sinks.weight", "layers.0.sinks.weight");
  same(kQwen2Moe, true, "blk.0.ffn_gate_inp_shexp.weight", "layers.0.shared_gate.weight");
  same(kQwen2Moe, false, "model.layers.0.mlp.shared_expert.up_proj.weight",
       "layers.0.shared.up.weight");
  same(kGraniteMoeShared, true, "blk.0.ffn_down_shexp.weight", "layers.0.shared.down.weight");
  same(kQwen3Moe, true, "blk.2.exp_probs_b.bias", "layers.2.choice_bias");
  EXPECT_EQ(OurName(kMixtral, false, "model.layers.0.block_sparse_moe.experts.07.w3.weight"), "");
  EXPECT_EQ(OurName(kMixtral, true, "blk.0..weight"), "");
}

TEST(GgufConfig, AFileIsACheckpoint) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "m.gguf").string();
  GgufBuilder builder = ModelFile();
  const float norm[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  builder.Tensor("blk.1.attn_norm.weight", {8}, kF32,
                 std::string_view(reinterpret_cast<const char*>(norm), sizeof(norm)));
  const float factor = 2;
  builder.Tensor("rope_freqs.weight", {1}, kF32,
                 std::string_view(reinterpret_cast<const char*>(&factor), sizeof(factor)));
  builder.Write(path);
  auto opened = OpenCheckpoint(path, "");
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const Checkpoint moved = std::move(opened).value();
  EXPECT_THAT(moved.config.json, HasSubstr("factors"));
  EXPECT_EQ(moved.generation_config.json, "");
  EXPECT_TRUE(moved.alternating_heads);
  EXPECT_EQ(moved.tensors.size(), 2U);
  const TensorView* view = moved.Find("layers.1.attention_norm.weight");
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(LoadElement(*view, 7), 8);
  EXPECT_EQ(moved.NameInFile("layers.1.attention_norm.weight"), "blk.1.attn_norm.weight");
  EXPECT_EQ(moved.NameInFile("layers.0.attention_norm.weight"), "blk.0.attn_norm.weight");
  std::string architecture;
  EXPECT_TRUE(moved.gguf->String("general.architecture", &architecture).ok());
  EXPECT_EQ(architecture, "llama");

  builder.Tensor("blk.1.attn_r_norm.weight", {8}, kF32,
                 std::string_view(reinterpret_cast<const char*>(norm), sizeof(norm)));
  builder.Write(path);
  EXPECT_THAT(
      OpenCheckpoint(path, "").error().message,
      HasSubstr("m.gguf: has tensor 'blk.1.attn_r_norm.weight', which is none of a llama model"));
}

TEST(GgufConfig, MetadataAreAConfiguration) {
  const auto config = ConfigOf(ModelFile());
  ASSERT_TRUE(config.ok()) << config.error().message;
  const auto expected = Json::Parse(R"({
      "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8,
      "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "max_position_embeddings": 64, "vocab_size": 5,
      "bos_token_id": 1, "eos_token_id": 2, "rms_norm_eps": 1e-5, "rope_theta": 500000,
      "tie_word_embeddings": true, "rotary_dims": 2, "attention_bias": false,
      "attention_output_bias": false, "mlp_bias": false, "use_qkv_bias": false})");
  EXPECT_EQ(*config, expected) << config->dump(2);
}

TEST(GgufConfig, AWindowOfAttentionIsSeen) {
  GgufBuilder builder = ModelFile();
  builder.Key("llama.attention.sliding_window", GgufType::kUint32, std::uint32_t{32});
  EXPECT_EQ((*ConfigOf(builder))["sliding_window"], 32);
}

TEST(GgufConfig, AWindowOfNoPositionsIsNone) {
  GgufBuilder builder = ModelFile();
  builder.Key("llama.attention.sliding_window", GgufType::kUint32, std::uint32_t{0});
  EXPECT_FALSE(ConfigOf(builder)->contains("sliding_window"));
}

TEST(GgufConfig, PatternsOfWindowsAreNumbersOrLists) {
  GgufBuilder number = ModelFile();
  number.Key("llama.attention.sliding_window_pattern", GgufType::kUint32, std::uint32_t{3});
  EXPECT_EQ((*ConfigOf(number))["sliding_window_pattern"], 3);
  GgufBuilder text = ModelFile();
  text.Text("llama.attention.sliding_window_pattern", "often");
  EXPECT_THAT(Refusal(text), HasSubstr("sliding_window_pattern must be an integer"));
}

// A number for each layer, as files of models have it of which some layers remember in a state.
TEST(GgufConfig, CountsOfLayersMayBeNone) {
  GgufBuilder builder = ModelFile("llama.attention.head_count_kv");
  std::string counts;
  GgufBuilder::Append(&counts, static_cast<std::uint32_t>(GgufType::kUint32));
  GgufBuilder::Append<std::uint64_t>(&counts, 3);
  for (const std::uint32_t count : {0U, 0U, 2U}) GgufBuilder::Append(&counts, count);
  builder.Key("llama.attention.head_count_kv", GgufType::kArray, std::string_view(counts));
  const auto config = ConfigOf(builder);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->at("num_key_value_heads"), 2);
  EXPECT_EQ(config->at("num_key_value_heads_of_layers"), Json({0, 0, 2}));
}

TEST(GgufConfig, OllamasNames) {
  EXPECT_EQ(OurName(kQwen35, true, "blk.0.ssm_dt"), OurName(kQwen35, true, "blk.0.ssm_dt.bias"));
  EXPECT_EQ(NameInFile(kQwen35, true, OurName(kQwen35, true, "blk.0.ssm_dt")), "blk.0.ssm_dt.bias");
  GgufBuilder builder = ModelFile();
  builder.Key("llama.rope.local.freq_base", GgufType::kFloat32, 5000.0F);
  EXPECT_EQ(ConfigOf(builder)->at("rope_local_base_freq"), 5000);
}

// Ollama's files of models that see leave out what all of them have.
TEST(GgufConfig, Gemma3RotatesAsItsMakersSay) {
  const auto rotation = [](bool sees, bool said) {
    GgufBuilder builder;
    builder.Text("general.architecture", "gemma3");
    for (const char* key : {"embedding_length", "feed_forward_length", "block_count",
                            "attention.head_count", "context_length", "attention.sliding_window"}) {
      builder.Key(std::string("gemma3.") + key, GgufType::kUint32, std::uint32_t{8});
    }
    if (sees) builder.Key("gemma3.vision.block_count", GgufType::kUint32, std::uint32_t{27});
    if (said) builder.Key("gemma3.rope.scaling.factor", GgufType::kFloat32, 4.0F);
    builder.Tensor("token_embd.weight", {8, 5}, kF32, std::string(160, '\0'));
    const auto config = ConfigOf(builder);
    EXPECT_TRUE(config.ok()) << config.error().message;
    return config->value("rope_scaling", Json::object()).value("factor", 1.0);
  };
  EXPECT_EQ(rotation(true, false), 8);
  EXPECT_EQ(rotation(true, true), 4);
  EXPECT_EQ(rotation(false, false), 1);
}

TEST(GgufConfig, YarnIsRead) {
  GgufBuilder builder = ModelFile();
  builder.Text("llama.rope.scaling.type", "yarn");
  builder.Key("llama.rope.scaling.factor", GgufType::kFloat32, 4.0F);
  builder.Key("llama.rope.scaling.original_context_length", GgufType::kUint32, std::uint32_t{64});
  builder.Key("llama.rope.scaling.yarn_beta_fast", GgufType::kFloat32, 16.0F);
  builder.Key("llama.rope.scaling.yarn_attn_factor", GgufType::kFloat32, 1.1F);
  const auto expected = Json::Parse(R"({
      "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 16.0,
      "attention_factor": 1.1})");
  EXPECT_EQ((*ConfigOf(builder))["rope_scaling"], expected);
}

TEST(GgufConfig, AFactorByItselfIsLinear) {
  GgufBuilder builder = ModelFile();
  builder.Key("llama.rope.scaling.factor", GgufType::kFloat32, 4.0F);
  EXPECT_EQ((*ConfigOf(builder))["rope_scaling"]["type"], "linear");
}

TEST(GgufConfig, WhatIsNotComputedIsRefused) {
  GgufBuilder builder = ModelFile();
  builder.Key("llama.attention.clamp_kqv", GgufType::kFloat32, 8.0F);
  EXPECT_EQ(Refusal(builder), "m.gguf: has llama.attention.clamp_kqv, which is not supported");
}

TEST(GgufConfig, AnLmHeadOfItsOwnIsSeen) {
  GgufBuilder builder = ModelFile();
  builder.Tensor("output.weight", {8, 5}, kF32, std::string(160, '\0'));
  EXPECT_EQ((*ConfigOf(builder))["tie_word_embeddings"], false);
}

TEST(GgufConfig, RotaryFactorsAreRead) {
  GgufBuilder builder = ModelFile();
  const float factor = 8;
  builder.Tensor("rope_freqs.weight", {1}, kF32,
                 std::string_view(reinterpret_cast<const char*>(&factor), sizeof(factor)));
  EXPECT_EQ((*ConfigOf(builder))["rope_scaling"],
            Json::Parse(R"({"factors":[8.0],"type":"factors"})"));
}

TEST(GgufConfig, DefectsAreNamedByTheirKeys) {
  for (const char* key :
       {"llama.embedding_length", "llama.feed_forward_length", "llama.block_count",
        "llama.attention.head_count", "llama.context_length"}) {
    EXPECT_EQ(Refusal(ModelFile(key)), std::string("m.gguf: lacks the key ") + key);
  }
  EXPECT_THAT(Refusal(ModelFile("", "mamba")), HasSubstr("is of architecture 'mamba'"));
  EXPECT_THAT(Refusal(GgufBuilder()), HasSubstr("is of architecture ''"));
  GgufBuilder text = ModelFile("llama.block_count");
  text.Text("llama.block_count", "two");
  EXPECT_THAT(Refusal(text), HasSubstr("llama.block_count must be an integer"));
  GgufBuilder yarn = ModelFile();
  yarn.Text("llama.rope.scaling.type", "warn");
  EXPECT_THAT(Refusal(yarn),
              HasSubstr("llama.rope.scaling.type is warn, but only none, linear and yarn"));
  for (const float base : {0.0F, -1.0F, std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN()}) {
    GgufBuilder odd = ModelFile("llama.rope.freq_base");
    odd.Key("llama.rope.freq_base", GgufType::kFloat32, base);
    EXPECT_THAT(Refusal(odd), HasSubstr("llama.rope.freq_base is "));
  }
}

}  // namespace
}  // namespace foretoken
