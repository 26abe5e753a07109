#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/printable.h"
#include "core/model/config/rope_config.h"
#include "core/model/families/family.h"
#include "core/model/families/gguf/own_keys.h"

namespace foretoken {
namespace {

constexpr TensorName kGemma4Names[] = {
    {"attention_post_norm", "post_attention_layernorm", "post_attention_norm"},
    {"mlp_norm", "pre_feedforward_layernorm", "ffn_norm"},
    {"mlp_post_norm", "post_feedforward_layernorm", "post_ffw_norm"},
    {"input_gate", "per_layer_input_gate", "inp_gate"},
    {"input_projection", "per_layer_projection", "proj"},
    {"input_post_norm", "post_per_layer_input_norm", "post_norm"},
    {"router_norm.weight", "router.scale", "ffn_gate_inp.scale"},
    {"router", "router.proj", "ffn_gate_inp"},
    {"expert_factors.weight", "router.per_expert_scale", "ffn_down_exps.scale"},
    {"experts.gate_up.weight", "experts.gate_up_proj", "ffn_gate_up_exps.weight"},
    {"experts.down.weight", "experts.down_proj", "ffn_down_exps.weight"},
    {"experts_norm", "pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
    {"experts_post_norm", "post_feedforward_layernorm_2", "post_ffw_norm_2"},
    {"shared_post_norm", "post_feedforward_layernorm_1", "post_ffw_norm_1"},
    {"scale.weight", "layer_scalar", "layer_output_scale.weight"},
    {"layer_inputs", "model.embed_tokens_per_layer", "per_layer_token_embd"},
    {"layer_inputs.projection", "model.per_layer_model_projection", "per_layer_model_proj"},
    {"layer_inputs.norm", "model.per_layer_projection_norm", "per_layer_proj_norm"},
};

// What the class has.
constexpr std::string_view kGemma4Fields = R"({
    "attention_bias": false, "attention_k_eq_v": false, "enable_moe_block": false,
    "final_logit_softcapping": null, "global_head_dim": 512, "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh", "hidden_size_per_layer_input": 256,
    "layer_types": null, "max_position_embeddings": 131072, "moe_intermediate_size": null,
    "num_experts": null, "num_global_key_value_heads": null, "num_key_value_heads": 4,
    "num_kv_shared_layers": 0, "sliding_window": 512, "tie_word_embeddings": true,
    "top_k_experts": null, "use_bidirectional_attention": null, "use_double_wide_mlp": false,
    "rope_parameters": {
      "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                         "rope_theta": 1000000.0},
      "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}})";

// What per_layer_config, as transformers writes it since 5.24, says of layers without a window: all
// the same, and of no other layer. Nothing where it is not there.
std::optional<Json> ReadPerLayer(ConfigFields& fields, const std::vector<bool>& sliding) {
  const Json* all = fields.Find("per_layer_config");
  if (all == nullptr || !all->is_object()) return std::nullopt;
  Json of_full;
  for (std::size_t i = 0; i < sliding.size(); ++i) {
    const Json own = all->value(std::to_string(i), Json::object());
    const auto first = std::ranges::find(sliding, false) - sliding.begin();
    if (std::cmp_equal(i, first)) of_full = own;
    if (own == (sliding[i] ? Json::object() : of_full)) continue;
    fields.Refuse(
        "per_layer_config gives layer {} sizes of its own, which only all layers without a window "
        "may have alike",
        i);
  }
  for (const auto& [name, value] : of_full.items()) {
    if (name == "head_dim" || name == "num_key_value_heads") continue;
    fields.Refuse(
        "per_layer_config has {}, but only head_dim and num_key_value_heads are supported there",
        Printable(name));
  }
  return of_full;
}

// Layers without a window have heads of their own, and only some of their pairs turn.
void ReadFullAttention(ConfigFields& fields, const std::vector<bool>& sliding,
                       const AttentionSpec& usual, AttentionSpec* full) {
  *full = usual;
  full->keys_as_values = fields.BoolOr("attention_k_eq_v", false);
  if (const auto own = ReadPerLayer(fields, sliding); own.has_value()) {
    ConfigFields sizes = fields.At(*own, "per_layer_config");
    full->head_dim = sizes.IntOr("head_dim", 2, kMaxHeadDim, usual.head_dim);
    full->kv_heads = sizes.IntOr("num_key_value_heads", 1, kMaxHeads, usual.kv_heads);
  } else {
    full->head_dim = fields.IntOr("global_head_dim", 2, kMaxHeadDim, 512);
    const int own_heads = fields.IntOr("num_global_key_value_heads", 1, kMaxHeads, usual.kv_heads);
    if (full->keys_as_values) full->kv_heads = own_heads;
  }
  if (full->head_dim % 2 != 0) {
    fields.Refuse("head_dim of layers without a window is {} but must be even", full->head_dim);
  }
  if (full->heads % full->kv_heads != 0) {
    fields.Refuse(
        "num_attention_heads {} is not a multiple of the {} key and value heads of layers without "
        "a window",
        full->heads, full->kv_heads);
  }
}

void ReadGemma4Ropes(ConfigFields& fields, const AttentionSpec& full, ModelConfig* config) {
  const Context context{config->max_positions, config->max_positions};
  if (!fields.Within("rope_scaling").empty()) {
    fields.Refuse("has rope_scaling, but rotations of Gemma 4 are in rope_parameters");
  }
  ConfigFields by_type = fields.Within("rope_parameters");
  ConfigFields of_full = by_type.Within("full_attention");
  ConfigFields of_sliding = by_type.Within("sliding_attention");
  const RopeSpec usual = {.theta = 10000, .dims = config->layers[0].attention.head_dim};
  RopeSpec rope = {.theta = 1e6, .dims = full.head_dim};
  config->ropes = {ReadRopeOfLayers(of_full, context, rope),
                   ReadRopeOfLayers(of_sliding, context, usual)};
}

// The last layers read the keys and values of the last layer before them that sees as they do, and
// may have MLPs twice as wide.
void ShareKeysAndValues(ConfigFields& fields, const std::vector<bool>& sliding,
                        ModelConfig* config) {
  const int layers = config->layer_count();
  const int shared = fields.IntOr("num_kv_shared_layers", 0, layers - 1, 0);
  const bool wide = fields.BoolOr("use_double_wide_mlp", false);
  const auto own = sliding.begin() + (layers - shared);
  for (int i = layers - shared; i < layers && fields.ok(); ++i) {
    const std::size_t layer = i;
    const auto from = std::find(std::reverse_iterator(own), sliding.rend(), sliding[layer]);
    if (from == sliding.rend()) {
      return fields.Refuse(
          "layer {} has no keys and values, and no layer before it that has some sees as it does",
          i);
    }
    config->layers[layer].attention.kv_from = static_cast<int>(sliding.rend() - from) - 1;
    if (wide) config->layers[layer].mlp.intermediate *= 2;
  }
}

// Beside the MLP of all rows, which is as wide as it would be alone.
void SetExpertsApart(ConfigFields& fields, ModelConfig* config) {
  const int width = fields.Integer("moe_intermediate_size", 1, kMaxIntermediate);
  std::vector<int> widths;
  for (const LayerSpec& layer : config->layers) widths.push_back(layer.mlp.intermediate);
  const auto every = [](int) { return true; };
  SetExperts(fields, {.weights = Routing::Weights::kSoftmaxOfChosen}, width, every, config);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    config->layers[i].mlp.shared_intermediate = widths[i];
    config->layers[i].mlp.apart = true;
  }
}

void DescribeGemma4(ConfigFields& fields, ModelConfig* config) {
  config->tied_embeddings = fields.BoolOr("tie_word_embeddings", true);
  config->embedding_scale = std::sqrt(static_cast<float>(config->hidden));
  config->block.norm_after = true;
  config->block.own_scale = true;
  config->logit_cap = static_cast<float>(
      fields.NumberOr("final_logit_softcapping", kLeastSoftCap, kMostSoftCap, 0));
  config->layer_input = fields.IntOr("hidden_size_per_layer_input", 0, kMaxHidden, 256);
  std::string both_ways;
  fields.String("use_bidirectional_attention", &both_ways);
  if (both_ways == "all") {
    fields.Refuse("use_bidirectional_attention is all, but texts are read forwards only");
  }
  const auto most = [](int layer) { return (layer + 1) % 6 != 0; };
  std::vector<bool> sliding = SlidingLayers(fields, config->layer_count(), most);
  sliding.back() = false;  // Whatever is said of it.
  AttentionSpec full;
  ReadFullAttention(fields, sliding, config->layers[0].attention, &full);
  if (!fields.ok()) return;
  ReadGemma4Ropes(fields, full, config);
  for (std::size_t i = 0; i < sliding.size(); ++i) {
    LayerSpec& layer = config->layers[i];
    if (!sliding[i]) layer.attention = full;
    layer.attention.rope = sliding[i] ? 1 : 0;
    layer.attention.scale = 1;
    layer.attention.qk_norm = AttentionSpec::QkNorm::kEachHead;
    layer.attention.value_norm = true;
  }
  SetWindows(sliding, fields.IntOr("sliding_window", 1, kMaxPositions, 512), config);
  ShareKeysAndValues(fields, sliding, config);
  if (fields.ok() && fields.BoolOr("enable_moe_block", false)) SetExpertsApart(fields, config);
}

}  // namespace

const Family kGemma4 = {.name = "gemma4_text",
                        .architecture = "Gemma4ForCausalLM",
                        .gguf = "gemma4",
                        .names = kGemma4Names,
                        .fields = kGemma4Fields,
                        .describe = DescribeGemma4,
                        .gguf_fields = Gemma4FromGguf,
                        .gguf_keys = Gemma4ToGguf};

}  // namespace foretoken
