#include "model/families/family.h"

namespace foretoken {
namespace {

constexpr TensorName kNames[] = {
    {"attention_post_norm", "post_attention_layernorm", "post_attention_norm"},
    {"mlp_post_norm", "post_feedforward_layernorm", "post_ffw_norm"},
};

// Norms stand behind blocks only, and queries and keys are normalised over all heads at once.
void DescribeOlmo2(ConfigFields& fields, ModelConfig* config) {
  if (fields.Has("sliding_window")) {
    fields.Refuse("has a sliding_window, as models of Olmo 3 do, which are not supported");
  }
  config->block.norm_before = false;
  config->block.norm_after = true;
  for (LayerSpec& layer : config->layers) {
    layer.attention.qk_norm = AttentionSpec::QkNorm::kAllHeads;
  }
}

}  // namespace

const Family kOlmo2 = {.name = "olmo2",
                       .architecture = "Olmo2ForCausalLM",
                       .gguf = "olmo2",
                       .names = kNames,
                       .describe = DescribeOlmo2};

}  // namespace foretoken
