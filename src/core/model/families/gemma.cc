#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/model/config/rope_config.h"
#include "core/model/families/family.h"

namespace foretoken {
namespace {

constexpr TensorName kGemmaNames[] = {
    {"attention_post_norm", "post_attention_layernorm", "post_attention_norm"},
    {"mlp_norm", "pre_feedforward_layernorm", "ffn_norm"},
    {"mlp_post_norm", "post_feedforward_layernorm", "post_ffw_norm"},
};

// What their classes have. Models of 4B and more leave out what is usual.
constexpr std::string_view kGemma2Fields = R"({
    "attention_bias": false, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
    "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "layer_types": null,
    "max_position_embeddings": 8192, "num_key_value_heads": 4, "query_pre_attn_scalar": 256,
    "sliding_window": 4096, "tie_word_embeddings": true, "use_bidirectional_attention": null})";
constexpr std::string_view kGemma3Fields = R"({
    "attention_bias": false, "final_logit_softcapping": null, "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh", "layer_types": null,
    "max_position_embeddings": 131072, "num_attention_heads": 8, "num_key_value_heads": 4,
    "query_pre_attn_scalar": 256, "rope_local_base_freq": 10000.0, "rope_theta": 1000000.0,
    "sliding_window": 4096, "sliding_window_pattern": 6, "tie_word_embeddings": true,
    "use_bidirectional_attention": false, "vocab_size": 262208})";

// What both have: embeddings scaled by the root of their width, norms before and after each block,
// and a scale of scores of their own.
void DescribeBoth(ConfigFields& fields, ModelConfig* config) {
  config->tied_embeddings = fields.BoolOr("tie_word_embeddings", true);
  config->embedding_scale = std::sqrt(static_cast<float>(config->hidden));
  config->block.norm_after = true;
  const double scalar = fields.NumberOr("query_pre_attn_scalar", 1e-6, kMostSoftCap, 256);
  config->logit_cap = static_cast<float>(
      fields.NumberOr("final_logit_softcapping", kLeastSoftCap, kMostSoftCap, 0));
  for (LayerSpec& layer : config->layers) layer.attention.scale = 1 / std::sqrt(scalar);
  if (fields.BoolOr("use_bidirectional_attention", false)) {
    fields.Refuse("use_bidirectional_attention is true, but texts are read forwards only");
  }
}

void DescribeGemma2(ConfigFields& fields, ModelConfig* config) {
  DescribeBoth(fields, config);
  const double cap = fields.NumberOr("attn_logit_softcapping", kLeastSoftCap, kMostSoftCap, 0);
  for (LayerSpec& layer : config->layers) layer.attention.score_cap = static_cast<float>(cap);
  const int window = fields.IntOr("sliding_window", 1, kMaxPositions, 4096);
  const auto even = [](int layer) { return layer % 2 == 0; };
  SetWindows(SlidingLayers(fields, config->layer_count(), even), window, config);
}

// Layers with a window rotate faster, and have no scaling but what is said for them. Of the older
// fields rope_scaling is meant for the others.
void ReadGemmaRopes(ConfigFields& fields, ModelConfig* config) {
  const Context context{config->max_positions, config->max_positions};
  const int dims = config->ropes[0].dims;
  ConfigFields by_type = fields.Within("rope_parameters");
  ConfigFields of_full = by_type.Within("full_attention");
  ConfigFields of_sliding = by_type.Within("sliding_attention");
  ConfigFields older = fields.Within("rope_scaling");
  if (!older.empty() && !of_full.empty()) {
    fields.Refuse("has rope_scaling beside rope_parameters: put all that is meant into the latter");
  }
  const RopeSpec full{.theta = fields.NumberOr("rope_theta", 1, 1e12, 10000), .dims = dims};
  const RopeSpec local{.theta = fields.NumberOr("rope_local_base_freq", 1, 1e12, 10000),
                       .dims = dims};
  config->ropes = {ReadRopeOfLayers(older.empty() ? of_full : older, context, full),
                   ReadRopeOfLayers(of_sliding, context, local)};
}

void DescribeGemma3(ConfigFields& fields, ModelConfig* config) {
  DescribeBoth(fields, config);
  const int window = fields.IntOr("sliding_window", 1, kMaxPositions, 4096);
  const int every = fields.IntOr("sliding_window_pattern", 1, kMaxLayers, 6);
  ReadGemmaRopes(fields, config);
  const auto most = [every](int layer) { return (layer + 1) % every != 0; };
  const std::vector<bool> sliding = SlidingLayers(fields, config->layer_count(), most);
  SetWindows(sliding, window, config);
  for (std::size_t i = 0; i < config->layers.size(); ++i) {
    AttentionSpec& attention = config->layers[i].attention;
    attention.qk_norm = AttentionSpec::QkNorm::kEachHead;
    if (sliding[i]) attention.rope = 1;
  }
}

// GGUF files do not say the activation, nor the scale of scores: it is the width of a head, but
// that of the stream for each head in the models of 27B.
void GemmaFromGguf(Json* config, int layers_of_27b) {
  const auto number = [&](const char* name) { return config->value(name, std::int64_t{0}); };
  const std::int64_t heads = std::max(number("num_attention_heads"), std::int64_t{1});
  const bool largest = number("num_hidden_layers") == layers_of_27b;
  const std::int64_t of_stream = number("hidden_size") / heads;
  const bool of_head = !largest && config->contains("head_dim");
  const std::int64_t scalar = of_head ? number("head_dim") : of_stream;
  if (scalar > 0) (*config)["query_pre_attn_scalar"] = scalar;
  (*config)["hidden_activation"] = "gelu_pytorch_tanh";
}
void Gemma2FromGguf(const GgufMetadata& /*metadata*/, Json* config) { GemmaFromGguf(config, 46); }
void Gemma3FromGguf(const GgufMetadata& metadata, Json* config) {
  GemmaFromGguf(config, 62);
  // Ollama's files of models that see do not say how layers without a window rotate: all the same.
  // (Google's models of 4B, 12B and 27B see, and have the linear factor 8 in config.json; those of
  // 270M and 1B do not, and have none.)
  const bool sees = metadata.Find("gemma3.vision.block_count") != nullptr;
  if (sees && !config->contains("rope_scaling")) {
    (*config)["rope_scaling"] = {{"type", "linear"}, {"factor", 8}};
  }
  const bool windows = config->contains("sliding_window");
  if (!windows) (*config)["sliding_window_pattern"] = 1;  // All layers see everything.
}

}  // namespace

const Family kGemma2 = {.name = "gemma2",
                        .architecture = "Gemma2ForCausalLM",
                        .gguf = "gemma2",
                        .names = kGemmaNames,
                        .folder_gains_less_one = true,
                        .fields = kGemma2Fields,
                        .describe = DescribeGemma2,
                        .gguf_fields = Gemma2FromGguf};

const Family kGemma3 = {.name = "gemma3_text",
                        .architecture = "Gemma3ForCausalLM",
                        .gguf = "gemma3",
                        .names = kGemmaNames,
                        .folder_gains_less_one = true,
                        .fields = kGemma3Fields,
                        .describe = DescribeGemma3,
                        .gguf_fields = Gemma3FromGguf};

}  // namespace foretoken
