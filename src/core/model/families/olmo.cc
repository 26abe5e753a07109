#include "core/model/families/family.h"

namespace foretoken {
namespace {

constexpr TensorName kOlmoNames[] = {
    {"attention_post_norm", "post_attention_layernorm", "post_attention_norm"},
    {"mlp_post_norm", "post_feedforward_layernorm", "post_ffw_norm"},
};

// What the classes have.
constexpr std::string_view kOlmo2Fields = R"({"attention_bias": false, "rms_norm_eps": 1e-5})";
constexpr std::string_view kOlmoeFields = R"({
    "attention_bias": false, "clip_qkv": null, "max_position_embeddings": 4096,
    "norm_topk_prob": false, "num_experts": null, "num_experts_per_tok": 8,
    "num_local_experts": 64, "rms_norm_eps": 1e-5})";

// Norms stand behind blocks only, and queries and keys are normalised over all heads at once.
void DescribeOlmo2(ConfigFields& /*fields*/, ModelConfig* config) {
  config->block.norm_before = false;
  config->block.norm_after = true;
  for (LayerSpec& layer : config->layers) {
    layer.attention.qk_norm = AttentionSpec::QkNorm::kAllHeads;
  }
}

// Queries and keys are normalised in the same way, but norms stand before blocks.
void DescribeOlmoe(ConfigFields& fields, ModelConfig* config) {
  if (fields.Has("clip_qkv")) {
    fields.Refuse("has clip_qkv, but queries, keys and values that are clipped are not supported");
  }
  for (LayerSpec& layer : config->layers) {
    layer.attention.qk_norm = AttentionSpec::QkNorm::kAllHeads;
  }
  const bool normalised = fields.BoolOr("norm_topk_prob", false);
  const Routing routing{.weights = normalised ? Routing::Weights::kSoftmaxOfChosen
                                              : Routing::Weights::kSoftmaxOfAll};
  const auto every = [](int) { return true; };
  SetExperts(fields, routing, config->layers.front().mlp.intermediate, every, config);
}

}  // namespace

const Family kOlmo2 = {.name = "olmo2",
                       .architecture = "Olmo2ForCausalLM",
                       .gguf = "olmo2",
                       .names = kOlmoNames,
                       .fields = kOlmo2Fields,
                       .describe = DescribeOlmo2};

const Family kOlmoe = {.name = "olmoe",
                       .architecture = "OlmoeForCausalLM",
                       .gguf = "olmoe",
                       .fields = kOlmoeFields,
                       .describe = DescribeOlmoe};

}  // namespace foretoken
