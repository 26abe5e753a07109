#include "model/families/family.h"

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

constexpr std::string_view kDefaults = R"({"attention_bias": true})";

// Half of each head is rotated unless the configuration says otherwise, and the output projection
// has no bias.
void DescribeGlm(ConfigFields& fields, ModelConfig* config) {
  if (!fields.Has("partial_rotary_factor") && !fields.Has("rotary_dims")) {
    ConfigFields parameters = fields.Within("rope_parameters");
    if (!parameters.Has("partial_rotary_factor")) config->ropes[0].dims /= 2;
  }
  for (LayerSpec& layer : config->layers) layer.attention.output_bias = false;
}

void DescribeGlm4(ConfigFields& fields, ModelConfig* config) {
  config->block.norm_after = true;
  DescribeGlm(fields, config);
}

}  // namespace

const Family kGlm = {.name = "glm",
                     .architecture = "GlmForCausalLM",
                     .gguf = "chatglm",
                     .names = kGlmNames,
                     .neighbours = Neighbours::kAlways,
                     .defaults = kDefaults,
                     .describe = DescribeGlm};

const Family kGlm4 = {.name = "glm4",
                      .architecture = "Glm4ForCausalLM",
                      .gguf = "glm4",
                      .names = kGlm4Names,
                      .neighbours = Neighbours::kAlways,
                      .defaults = kDefaults,
                      .describe = DescribeGlm4};

}  // namespace foretoken
