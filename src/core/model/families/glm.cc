#include "core/model/families/family.h"
#include "core/model/families/gguf/own_keys.h"

namespace foretoken {
namespace {

constexpr TensorName kGlmNames[] = {
    {"gate_up", "mlp.gate_up_proj", "ffn_up"},
};
constexpr TensorName kGlm4Names[] = {
    {"attention_post_norm", "post_self_attn_layernorm", "post_attention_norm"},
    {"mlp_post_norm", "post_mlp_layernorm", "post_ffw_norm"},
    {"gate_up", "mlp.gate_up_proj", "ffn_up"},
};

constexpr TensorName kGlm4MoeNames[] = {
    {"mlp_norm", "post_attention_layernorm", "post_attention_norm"},
    {"shared.gate", "mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"shared.up", "mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"shared.down", "mlp.shared_experts.down_proj", "ffn_down_shexp"},
};

// What the classes have.
constexpr std::string_view kGlmFields = R"({
    "attention_bias": true, "head_dim": 128, "max_position_embeddings": 131072,
    "num_key_value_heads": 2, "partial_rotary_factor": 0.5, "rms_norm_eps": 1.5625e-07})";
constexpr std::string_view kGlm4MoeFields = R"({
    "attention_bias": false, "first_k_dense_replace": 1, "max_position_embeddings": 131072,
    "moe_intermediate_size": 1408, "n_group": 1, "n_routed_experts": null, "n_shared_experts": 1,
    "norm_topk_prob": true, "num_experts_per_tok": 8, "num_key_value_heads": 8,
    "num_local_experts": 128, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-5,
    "routed_scaling_factor": 1.0, "topk_group": 1, "use_qk_norm": false})";

// The output projection has no bias.
void DescribeGlm(ConfigFields& /*fields*/, ModelConfig* config) {
  for (LayerSpec& layer : config->layers) layer.attention.output_bias = false;
}

void DescribeGlm4(ConfigFields& fields, ModelConfig* config) {
  config->block.norm_after = true;
  DescribeGlm(fields, config);
}

// Rows choose experts by sigmoids and a bias, among the groups whose two best ones score most.
void DescribeGlm4Moe(ConfigFields& fields, ModelConfig* config) {
  DescribeGlm(fields, config);
  std::string scores = "sigmoid";
  fields.String("scoring_func", &scores);
  if (scores != "sigmoid") fields.Refuse("scoring_func is not sigmoid");
  const bool normalised = fields.BoolOr("norm_topk_prob", true);
  Routing routing{
      .weights = normalised ? Routing::Weights::kSigmoidsOfSum : Routing::Weights::kSigmoids,
      .group_score = Routing::GroupScore::kTwoLargest};
  routing.factor = static_cast<float>(fields.NumberOr("routed_scaling_factor", 1e-6, 1e6, 1));
  routing.groups = fields.IntOr("n_group", 1, kMaxExperts, 1);
  routing.chosen_groups = fields.IntOr("topk_group", 1, kMaxExperts, 1);
  const int width = fields.Integer("moe_intermediate_size", 1, kMaxIntermediate);
  const int shared = fields.IntOr("n_shared_experts", 0, kMaxExperts, 1);
  const int dense = fields.IntOr("first_k_dense_replace", 0, kMaxLayers, 1);
  const bool normed = fields.BoolOr("use_qk_norm", false);
  if (!fields.ok()) return;
  SetExperts(
      fields, routing, width, [dense](int layer) { return layer >= dense; }, config);
  SetShared(shared * width, false, config);
  for (LayerSpec& layer : config->layers) {
    layer.mlp.choice_bias = layer.mlp.has_experts();
    if (normed) layer.attention.qk_norm = AttentionSpec::QkNorm::kEachHead;
  }
}

}  // namespace

const Family kGlm = {.name = "glm",
                     .architecture = "GlmForCausalLM",
                     .gguf = "chatglm",
                     .names = kGlmNames,
                     .neighbours = Neighbours::kAlways,
                     .fields = kGlmFields,
                     .describe = DescribeGlm};

const Family kGlm4 = {.name = "glm4",
                      .architecture = "Glm4ForCausalLM",
                      .gguf = "glm4",
                      .names = kGlm4Names,
                      .neighbours = Neighbours::kAlways,
                      .fields = kGlmFields,
                      .describe = DescribeGlm4};

const Family kGlm4Moe = {.name = "glm4_moe",
                         .architecture = "Glm4MoeForCausalLM",
                         .gguf = "glm4moe",
                         .names = kGlm4MoeNames,
                         .fields = kGlm4MoeFields,
                         .describe = DescribeGlm4Moe,
                         .gguf_fields = Glm4MoeFromGguf,
                         .gguf_keys = Glm4MoeToGguf};

}  // namespace foretoken
