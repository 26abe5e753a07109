#include "core/model/families/family.h"

namespace foretoken {
namespace {

// Each head's norm has a tensor of its own in folders; GGUF files have one for all heads.
constexpr TensorName kStableLmNames[] = {
    {"q_norm.*", "self_attn.q_layernorm.norms.*", ""},
    {"k_norm.*", "self_attn.k_layernorm.norms.*", ""},
};

// What the class has.
constexpr std::string_view kStableLmFields = R"({
    "layer_norm_eps": 1e-5, "max_position_embeddings": 4096, "num_key_value_heads": 32,
    "partial_rotary_factor": 0.25, "qk_layernorm": false, "use_parallel_residual": false,
    "use_qkv_bias": false})";

void DescribeStableLm(ConfigFields& fields, ModelConfig* config) {
  config->norm.kind = NormKind::kLayer;
  config->norm.bias = true;
  config->norm.epsilon = static_cast<float>(fields.NumberOr("layer_norm_eps", 1e-30, 1, 1e-5));
  const bool parallel = fields.BoolOr("use_parallel_residual", false);
  config->block.parallel = parallel;
  config->block.shared_norm = parallel;
  const bool bias = fields.BoolOr("use_qkv_bias", false);
  const bool norms = fields.BoolOr("qk_layernorm", false);
  for (LayerSpec& layer : config->layers) {
    layer.attention.qkv_bias = bias;
    layer.attention.output_bias = false;
    if (norms) layer.attention.qk_norm = AttentionSpec::QkNorm::kEachHeadItsOwn;
  }
}

void StableLmFromGguf(const GgufMetadata& metadata, Json* config) {
  bool parallel = false;
  if (metadata.Flag("stablelm.use_parallel_residual", &parallel).ok()) {
    (*config)["use_parallel_residual"] = parallel;
  }
}

void StableLmToGguf(const ModelConfig& config, GgufHeader* header) {
  header->Set("stablelm.use_parallel_residual", config.block.parallel);
}

}  // namespace

const Family kStableLm = {.name = "stablelm",
                          .architecture = "StableLmForCausalLM",
                          .gguf = "stablelm",
                          .names = kStableLmNames,
                          .fields = kStableLmFields,
                          .describe = DescribeStableLm,
                          .gguf_fields = StableLmFromGguf,
                          .gguf_keys = StableLmToGguf};

}  // namespace foretoken
