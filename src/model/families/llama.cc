#include "model/families/family.h"

namespace foretoken {
namespace {

void DescribeMistral(ConfigFields& fields, ModelConfig* config) {
  const int window = fields.IntOr("sliding_window", 1, kMaxPositions, config->max_positions);
  const auto all = [](int) { return true; };
  SetWindows(SlidingLayers(fields, config->layer_count(), all), window, config);
}

// Some of its layers do not rotate: every fourth, unless the list says otherwise.
void DescribeSmolLm3(ConfigFields& fields, ModelConfig* config) {
  const int every = fields.IntOr("no_rope_layer_interval", 1, kMaxLayers, 4);
  const ConfigFields::Json* rotates = fields.Find("no_rope_layers");
  if (rotates != nullptr && (!rotates->is_array() || rotates->size() != config->layers.size())) {
    return fields.Refuse("no_rope_layers must be a list with 0 or 1 for each layer");
  }
  for (std::size_t i = 0; i < config->layers.size(); ++i) {
    const bool rotated = rotates != nullptr
                             ? (*rotates)[i].is_number() && (*rotates)[i].get<double>() != 0
                             : (i + 1) % static_cast<std::size_t>(every) != 0;
    if (!rotated) config->layers[i].attention.rope = -1;
  }
  if (fields.BoolOr("use_sliding_window", false)) DescribeMistral(fields, config);
}

// Multipliers of the embedding, of what layers add, of scores and (the other way round) of logits.
void DescribeGranite(ConfigFields& fields, ModelConfig* config) {
  constexpr double kMost = 1e6;
  const auto number = [&](const char* name, double otherwise) {
    return fields.NumberOr(name, 1e-6, kMost, otherwise);
  };
  config->embedding_scale = static_cast<float>(number("embedding_multiplier", 1));
  config->block.scale = static_cast<float>(number("residual_multiplier", 1));
  config->logit_scale = static_cast<float>(1 / number("logits_scaling", 1));
  for (LayerSpec& layer : config->layers) {
    layer.attention.scale = number("attention_multiplier", layer.attention.scale);
  }
}

// In files the two scales of yarn are one, of all numbers, and the other is 1.
void Ministral3FromGguf(const GgufMetadata& metadata, ConfigFields::Json* config) {
  if (!config->contains("rope_scaling")) return;
  ConfigFields::Json& scaling = (*config)["rope_scaling"];
  double value = 0;
  if (metadata.Number("mistral3.rope.scaling.yarn_log_multiplier", &value).ok() && value > 0) {
    scaling["mscale"] = 1;
    scaling["mscale_all_dim"] = static_cast<float>(value);
  }
  value = 0;
  if (metadata.Number("mistral3.attention.temperature_scale", &value).ok() && value > 0) {
    scaling["llama_4_scaling_beta"] = static_cast<float>(value);
  }
}

// There the number by which logits are divided is called a scale, too.
template <const char* kKey>
void GraniteFromGguf(const GgufMetadata& metadata, ConfigFields::Json* config) {
  double scale = 0;
  if (metadata.Number(kKey, &scale).ok() && scale > 0) {
    (*config)["logits_scaling"] = static_cast<float>(scale);
  }
}
constexpr char kGraniteScale[] = "granite.logit_scale";
constexpr char kGraniteMoeScale[] = "granitemoe.logit_scale";

constexpr TensorName kMixtralNames[] = {
    {"router", "block_sparse_moe.gate", "ffn_gate_inp"},
    {"experts.*.gate", "block_sparse_moe.experts.*.w1", "ffn_gate.*"},
    {"experts.*.up", "block_sparse_moe.experts.*.w3", "ffn_up.*"},
    {"experts.*.down", "block_sparse_moe.experts.*.w2", "ffn_down.*"},
};
constexpr TensorName kGraniteMoeNames[] = {
    {"router", "block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"experts.gate_up", "block_sparse_moe.input_linear", ""},
    {"experts.down", "block_sparse_moe.output_linear", "ffn_down_exps"},
    {"shared.gate_up", "shared_mlp.input_linear", ""},
    {"shared.down", "shared_mlp.output_linear", "ffn_down_shexp"},
};

bool EveryLayer(int /*layer*/) { return true; }

void DescribeMixtral(ConfigFields& fields, ModelConfig* config) {
  DescribeMistral(fields, config);
  SetExperts(fields, {}, config->layers.front().mlp.intermediate, EveryLayer, config);
}

// In files models with a shared expert are called as those without.
void DescribeGraniteMoe(ConfigFields& fields, ModelConfig* config) {
  DescribeGranite(fields, config);
  SetExperts(fields, {}, config->layers.front().mlp.intermediate, EveryLayer, config);
  SetShared(fields.IntOr("shared_intermediate_size", 0, kMaxIntermediate, 0), false, config);
}

}  // namespace

const Family kLlama = {.name = "llama",
                       .architecture = "LlamaForCausalLM",
                       .gguf = "llama",
                       .neighbours = Neighbours::kInGguf};

const Family kMistral = {.name = "mistral",
                         .architecture = "MistralForCausalLM",
                         .neighbours = Neighbours::kInGguf,
                         .describe = DescribeMistral};

const Family kMinistral3 = {.name = "ministral3",
                            .architecture = "Ministral3ForCausalLM",
                            .gguf = "mistral3",
                            .neighbours = Neighbours::kInGguf,
                            .describe = DescribeMistral,
                            .gguf_fields = Ministral3FromGguf};

const Family kSmolLm3 = {.name = "smollm3",
                         .architecture = "SmolLM3ForCausalLM",
                         .gguf = "smollm3",
                         .neighbours = Neighbours::kInGguf,
                         .describe = DescribeSmolLm3};

const Family kGranite = {.name = "granite",
                         .architecture = "GraniteForCausalLM",
                         .gguf = "granite",
                         .neighbours = Neighbours::kInGguf,
                         .describe = DescribeGranite,
                         .gguf_fields = GraniteFromGguf<kGraniteScale>};

const Family kMixtral = {.name = "mixtral",
                         .architecture = "MixtralForCausalLM",
                         .gguf = "llama",
                         .names = kMixtralNames,
                         .neighbours = Neighbours::kInGguf,
                         .gguf_has_experts = true,
                         .describe = DescribeMixtral};

const Family kGraniteMoe = {.name = "granitemoe",
                            .architecture = "GraniteMoeForCausalLM",
                            .gguf = "granitemoe",
                            .names = kGraniteMoeNames,
                            .neighbours = Neighbours::kInGguf,
                            .describe = DescribeGraniteMoe,
                            .gguf_fields = GraniteFromGguf<kGraniteMoeScale>};

const Family kGraniteMoeShared = {.name = "granitemoeshared",
                                  .architecture = "GraniteMoeSharedForCausalLM",
                                  .names = kGraniteMoeNames,
                                  .neighbours = Neighbours::kInGguf,
                                  .describe = DescribeGraniteMoe};

}  // namespace foretoken
