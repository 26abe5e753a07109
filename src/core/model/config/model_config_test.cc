#include "core/model/config/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/model/config/named_shapes.h"
#include "core/model/decoder/rope.h"
#include "core/model/families/read_config.h"
#include "json/json.h"

namespace foretoken {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Json Minimal() {
  return {{"model_type", "llama"},  {"hidden_size", 64},        {"intermediate_size", 192},
          {"num_hidden_layers", 2}, {"num_attention_heads", 4}, {"vocab_size", 512}};
}

Result<ModelConfig> ParseWith(const Json& changes) {
  Json config = Minimal();
  config.update(changes);
  return ParseModelConfig(config.dump(), "config.json");
}

std::string ConfigError(const Json& changes) {
  const auto config = ParseWith(changes);
  return config.ok() ? "no error" : config.error().message;
}

TEST(ModelConfigTest, FillsDefaults) {
  const auto config = ParseWith(Json::object());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->architecture, "LlamaForCausalLM");
  const AttentionSpec& attention = config->layers.at(1).attention;
  EXPECT_EQ(attention.kv_heads, 4);
  EXPECT_EQ(attention.head_dim, 16);
  EXPECT_EQ(attention.scale, 0.25);
  EXPECT_EQ(config->layers.size(), 2U);
  EXPECT_EQ(config->max_positions, 2048);
  EXPECT_FLOAT_EQ(config->norm.epsilon, 1e-6F);
  EXPECT_EQ(config->ropes.at(0).theta, 10000.0);
  EXPECT_EQ(config->ropes.at(0).scaling.kind, RopeScaling::Kind::kNone);
  EXPECT_FALSE(config->tied_embeddings);
  EXPECT_EQ(config->bos, -1);
  EXPECT_TRUE(config->eos.empty());
}

TEST(ModelConfigTest, ReadsEveryField) {
  const auto config = ParseWith({{"architectures", {"LlamaForCausalLM"}},
                                 {"num_key_value_heads", 2},
                                 {"head_dim", 32},
                                 {"max_position_embeddings", 4096},
                                 {"rms_norm_eps", 1e-5},
                                 {"rope_theta", 500000},
                                 {"rope_scaling", nullptr},
                                 {"tie_word_embeddings", true},
                                 {"bos_token_id", 1},
                                 {"eos_token_id", {2, 4}}});
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->layers[0].attention.kv_heads, 2);
  EXPECT_EQ(config->layers[0].attention.head_dim, 32);
  EXPECT_EQ(config->max_positions, 4096);
  EXPECT_FLOAT_EQ(config->norm.epsilon, 1e-5F);
  EXPECT_EQ(config->ropes.at(0).theta, 500000.0);
  EXPECT_TRUE(config->tied_embeddings);
  EXPECT_EQ(config->bos, 1);
  EXPECT_THAT(config->eos, ElementsAre(2, 4));
  // Counted by hand: table, two layers (attention, MLP, norms), the last norm.
  EXPECT_EQ(config->parameters(),
            512 * 64 + 2 * (64 * 32 * 8 + 64 * 128 + 3 * 64 * 192 + 128) + 64);
}

TEST(ModelConfigTest, ReadsBothSpellingsOfRope) {
  const Json llama3 = {{"factor", 8.0},           {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 4096},
                       {"rope_type", "llama3"},   {"rope_theta", 500000.0}};
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const auto config = ParseWith({{name, llama3}});
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->ropes.at(0).scaling.kind, RopeScaling::Kind::kLlama3);
    EXPECT_EQ(config->ropes.at(0).scaling.original_positions, 4096);
    EXPECT_EQ(config->ropes.at(0).theta, 500000.0);
  }
  const auto linear = ParseWith({{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}});
  ASSERT_TRUE(linear.ok()) << linear.error().message;
  EXPECT_EQ(linear->ropes.at(0).scaling.kind, RopeScaling::Kind::kLinear);
  EXPECT_TRUE(ParseWith({{"rope_parameters", {{"rope_type", "default"}}}}).ok());
}

TEST(ModelConfigTest, RotaryFactorsAreOneForEachFrequency) {
  const auto with = [](const Json& factors) {
    return ParseWith(
        {{"head_dim", 4}, {"rope_scaling", {{"type", "factors"}, {"factors", factors}}}});
  };
  const auto config = with({1, 8.5});
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_THAT(config->ropes.at(0).scaling.factors, ElementsAre(1, 8.5));
  for (const Json& wrong : {Json({1}), Json({1, 0}), Json({1, "a"}), Json(nullptr)}) {
    EXPECT_THAT(with(wrong).error().message, HasSubstr("factors must be 2 positive numbers"));
  }
}

TEST(ModelConfigTest, RefusesWhatWouldBeComputedWrongly) {
  EXPECT_THAT(ConfigError({{"rope_scaling", {{"rope_type", "mrope"}, {"factor", 2}}}}),
              AllOf(HasSubstr("config.json: rope_scaling"), HasSubstr("mrope")));
  EXPECT_THAT(ConfigError({{"rope_scaling", {{"rope_type", "longrope"}, {"factor", 2}}}}),
              HasSubstr("short_factor must be 8 positive numbers"));
  EXPECT_THAT(ConfigError({{"model_type", "gpt2"}}), HasSubstr("gpt2"));
  EXPECT_THAT(ConfigError({{"architectures", {"Qwen2ForCausalLM"}}}),
              HasSubstr("Qwen2ForCausalLM"));
  EXPECT_THAT(ConfigError({{"architectures", {"GPT2LMHeadModel"}}}), HasSubstr("GPT2LMHeadModel"));
  EXPECT_THAT(ConfigError({{"model_type", nullptr}}),
              HasSubstr("but there are LlamaForCausalLM, Mistral"));
  EXPECT_THAT(ConfigError({{"hidden_act", "gelu"}}), HasSubstr("only silu"));
  EXPECT_THAT(ConfigError({{"quantization_config", {{"bits", 4}}}}),
              HasSubstr("quantization_config"));
  EXPECT_THAT(ConfigError({{"model_type", "glm"}, {"partial_rotary_factor", 0.01}}),
              HasSubstr("partial_rotary_factor"));
  const Json mistral = {{"model_type", "mistral"}, {"num_key_value_heads", 4}};
  const auto with_window = [&](const Json& window) {
    Json changes = mistral;
    changes["sliding_window"] = window;
    return ConfigError(changes);
  };
  EXPECT_THAT(with_window("wide"), HasSubstr("sliding_window is"));
  EXPECT_EQ(with_window(nullptr), "no error");
  EXPECT_THAT(ConfigError({{"per_layer_config", {{"1", {{"head_dim", 8}}}}}}),
              HasSubstr("per_layer_config"));
  EXPECT_THAT(ConfigError({{"model_type", "granitemoehybrid"}, {"architectures", nullptr}}),
              HasSubstr("has layers that are not attention (layer_types)"));
}

// What a class does not have means nothing to it, and what is left out is as the class has it.
TEST(ModelConfigTest, FieldsAreThoseOfTheClass) {
  const auto llama = ParseWith({{"sliding_window", 5},
                                {"partial_rotary_factor", 0.5},
                                {"attn_logit_softcapping", 4},
                                {"rotary_dims", 4}});
  ASSERT_TRUE(llama.ok()) << llama.error().message;
  EXPECT_EQ(llama->layers[0].attention.window, 0);
  EXPECT_EQ(llama->layers[0].attention.score_cap, 0);
  EXPECT_EQ(llama->ropes.at(0).dims, 16);
  const auto mistral =
      ParseWith({{"model_type", "mistral"}, {"num_attention_heads", 8}, {"attention_bias", true}});
  ASSERT_TRUE(mistral.ok()) << mistral.error().message;
  EXPECT_EQ(mistral->max_positions, 131072);
  EXPECT_EQ(mistral->layers[0].attention.window, 4096);
  EXPECT_FALSE(mistral->layers[0].attention.qkv_bias);
  const auto granite = ParseWith({{"model_type", "granite"}});
  ASSERT_TRUE(granite.ok()) << granite.error().message;
  EXPECT_EQ(granite->layers[0].attention.scale, 1);
  // A description that is of no class keeps what it says.
  Json plain = Minimal();
  plain.update({{"rotary_dims", 4}});
  EXPECT_EQ(ParseDescription(plain.dump(), "config.json")->ropes.at(0).dims, 4);
}

TEST(ModelConfigTest, TwoRotationsMustSayTheSame) {
  const Json linear = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 500.0}};
  EXPECT_EQ(ConfigError({{"rope_scaling", linear}, {"rope_parameters", linear}}), "no error");
  EXPECT_THAT(ConfigError({{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}},
                           {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 500.0}}}}),
              HasSubstr("rope_scaling and rope_parameters say different things"));
  const auto older = ParseWith({{"rope_scaling", linear}, {"rope_parameters", Json::object()}});
  ASSERT_TRUE(older.ok()) << older.error().message;
  EXPECT_EQ(older->ropes.at(0).scaling.factor, 2);
}

// The class of a model that sees besides says whether the head is the table.
TEST(ModelConfigTest, TheOuterTieCounts) {
  const auto tied = [](const char* type, const Json& outer, const Json& inner) {
    Json text = Minimal();
    text.update({{"model_type", "ministral3"}, {"num_attention_heads", 8}, {"head_dim", 8}});
    if (!inner.is_null()) text["tie_word_embeddings"] = inner;
    Json config = {{"model_type", type}, {"text_config", text}};
    if (!outer.is_null()) config["tie_word_embeddings"] = outer;
    const auto parsed = ParseModelConfig(config.dump(), "config.json");
    EXPECT_TRUE(parsed.ok()) << parsed.error().message;
    return parsed.ok() && parsed->tied_embeddings;
  };
  EXPECT_TRUE(tied("mistral3", true, false));
  EXPECT_FALSE(tied("mistral3", false, true));
  EXPECT_TRUE(tied("mistral3", nullptr, false));
  EXPECT_FALSE(tied("qwen3_5", nullptr, true));
  EXPECT_TRUE(tied("llava", nullptr, true));
}

// As the models that see besides say of their text.
TEST(ModelConfigTest, SomeFamiliesLeaveOutWhatIsUsual) {
  const Json config = {{"architectures", {"Gemma3ForConditionalGeneration"}},
                       {"model_type", "gemma3"},
                       {"eos_token_id", {1, 106}},
                       {"text_config",
                        {{"model_type", "gemma3_text"},
                         {"hidden_size", 2560},
                         {"intermediate_size", 10240},
                         {"num_hidden_layers", 34},
                         {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                         {"sliding_window", 1024}}}};
  const auto parsed = ParseModelConfig(config.dump(), "config.json");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->vocabulary, 262208);
  EXPECT_EQ(parsed->layers[0].attention.heads, 8);
  EXPECT_EQ(parsed->layers[0].attention.kv_heads, 4);
  EXPECT_EQ(parsed->layers[0].attention.window, 1024);
  EXPECT_EQ(parsed->layers[5].attention.window, 0);
  EXPECT_EQ(parsed->ropes[0].theta, 1e6);
  EXPECT_EQ(parsed->ropes[1].theta, 1e4);
  EXPECT_TRUE(parsed->tied_embeddings);
  EXPECT_THAT(parsed->eos, ElementsAre(1, 106));
}

TEST(ModelConfigTest, RefusesBadValues) {
  EXPECT_THAT(ConfigError({{"hidden_size", nullptr}}), HasSubstr("lacks hidden_size"));
  for (const Json& bad : {Json(0), Json(-1), Json(1.5), Json("64"), Json(1LL << 40), Json(~0ULL)}) {
    for (const char* name :
         {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
          "num_key_value_heads", "head_dim", "vocab_size", "max_position_embeddings"}) {
      EXPECT_THAT(ConfigError({{name, bad}}), HasSubstr(std::string(name) + " is")) << bad.dump();
    }
  }
  EXPECT_THAT(ConfigError({{"num_key_value_heads", 3}}), HasSubstr("not a multiple"));
  EXPECT_THAT(ConfigError({{"hidden_size", 66}}), HasSubstr("not a multiple"));
  EXPECT_THAT(ConfigError({{"head_dim", 15}}), HasSubstr("must be even"));
  EXPECT_THAT(ConfigError({{"rms_norm_eps", -1}}), HasSubstr("rms_norm_eps"));
  EXPECT_THAT(ConfigError({{"rope_theta", "x"}}), HasSubstr("rope_theta"));
  EXPECT_THAT(ConfigError({{"rope_scaling", 3}}), HasSubstr("rope_scaling must be"));
  EXPECT_THAT(ConfigError({{"rope_scaling", {{"type", "linear"}}}}), HasSubstr("lacks factor"));
  EXPECT_THAT(ConfigError({{"tie_word_embeddings", 1}}), HasSubstr("true or false"));
  EXPECT_THAT(ConfigError({{"eos_token_id", 512}}), HasSubstr("below the vocabulary of 512"));
  EXPECT_THAT(ConfigError({{"eos_token_id", {1, "2"}}}), HasSubstr("eos_token_id"));
  EXPECT_FALSE(ParseModelConfig("[", "config.json").ok());
  EXPECT_FALSE(ParseModelConfig("[]", "config.json").ok());
}

TEST(ModelConfigTest, GenerationConfigOverrides) {
  auto config = ParseWith({{"eos_token_id", 2}, {"bos_token_id", 1}});
  ASSERT_TRUE(config.ok());
  ASSERT_TRUE(ApplyGenerationConfig("{}", "g.json", &*config).ok());
  EXPECT_THAT(config->eos, ElementsAre(2));
  ASSERT_TRUE(
      ApplyGenerationConfig(R"({"eos_token_id":[7,9],"bos_token_id":3})", "g.json", &*config).ok());
  EXPECT_THAT(config->eos, ElementsAre(7, 9));
  EXPECT_EQ(config->bos, 3);
  EXPECT_THAT(ApplyGenerationConfig(R"({"eos_token_id":512})", "g.json", &*config).error().message,
              HasSubstr("g.json"));
}

TEST(ModelConfigTest, NamedShapesHaveTheirPublishedSize) {
  const auto millions = [](const char* name) {
    const auto shape = NamedShape(name);
    EXPECT_TRUE(shape.ok()) << name;
    return static_cast<double>(shape->parameters()) / 1e6;
  };
  EXPECT_NEAR(millions("llama-135m"), 134.515, 0.001);
  EXPECT_NEAR(millions("llama-360m"), 361.821, 0.001);
  EXPECT_NEAR(millions("llama-1b"), 1235.814, 0.001);
  EXPECT_NEAR(millions("llama-8b"), 8030.261, 0.001);
  EXPECT_NEAR(millions("draft-12m") / millions("llama-135m"), 0.1, 0.015);
  EXPECT_NEAR(millions("draft-19m") / millions("llama-135m"), 0.14, 0.005);
  EXPECT_NEAR(millions("draft-111m") / millions("llama-1b"), 0.1, 0.015);
  EXPECT_NEAR(millions("moe-669m"), 669.017, 0.001);
  EXPECT_THAT(NamedShape("gpt-5").error().message, HasSubstr("llama-135m"));
}

TEST(RopeTest, Unscaled) {
  const RopeSpec rope{.dims = 8};
  EXPECT_THAT(RopeFrequencies(rope),
              testing::Pointwise(testing::DoubleNear(1e-15), {1.0, 0.1, 0.01, 0.001}));
  const RopeTable table = MakeRopeTable(rope, 100);
  EXPECT_EQ(table.positions, 100);
  EXPECT_EQ(table.cos.as<float>()[0], 1.0F);
  EXPECT_EQ(table.sin.as<float>()[0], 0.0F);
  EXPECT_FLOAT_EQ(table.cos.as<float>()[7 * 4 + 1], std::cos(0.7F));
  EXPECT_FLOAT_EQ(table.sin.as<float>()[99 * 4 + 2], std::sin(0.99F));
}

TEST(RopeTest, LinearDividesPositions) {
  RopeSpec rope{.dims = 8};
  rope.scaling.kind = RopeScaling::Kind::kLinear;
  rope.scaling.factor = 4;
  EXPECT_THAT(RopeFrequencies(rope),
              testing::Pointwise(testing::DoubleNear(1e-15), {0.25, 0.025, 0.0025, 0.00025}));
}

// Llama 3.1: head_dim 128, theta 500000, factor 8, wavelengths compared with 8192 / 1 and 8192 / 4.
TEST(RopeTest, Llama3ByWavelength) {
  RopeSpec rope{.theta = 500000, .dims = 128};
  rope.scaling.kind = RopeScaling::Kind::kLlama3;
  rope.scaling.factor = 8;
  const std::vector<double> frequencies = RopeFrequencies(rope);
  int kept = 0;
  int slowed = 0;
  for (int i = 0; i < 64; ++i) {
    const double plain = std::exp(-std::log(500000.0) * i / 64);
    const double wavelength = 2 * M_PI / plain;
    if (wavelength < 2048) {
      EXPECT_NEAR(frequencies[i] / plain, 1, 1e-12) << i;
      ++kept;
    } else if (wavelength > 8192) {
      EXPECT_NEAR(frequencies[i] / plain, 0.125, 1e-12) << i;
      ++slowed;
    } else {
      const double smooth = (8192 / wavelength - 1) / 3;
      // By a factor that is a float32.
      EXPECT_NEAR(frequencies[i] / plain, (1 - smooth) / 8 + smooth, 1e-7) << i;
    }
  }
  EXPECT_EQ(kept, 29);
  EXPECT_EQ(slowed, 29);
}

}  // namespace
}  // namespace foretoken
