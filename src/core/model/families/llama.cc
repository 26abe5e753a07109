#include <cmath>

#include "base/numbers/integers.h"
#include "core/model/families/family.h"

namespace foretoken {
namespace {

void DescribeMistral(ConfigFields& fields, ModelConfig* config) {
  const int window = fields.IntOr("sliding_window", 1, kMaxPositions, config->max_positions);
  const auto all = [](int) { return true; };
  SetWindows(SlidingLayers(fields, config->layer_count(), all), window, config);
}

// Queries grow with their position, whatever the type of the rotation is.
void DescribeMinistral3(ConfigFields& fields, ModelConfig* config) {
  DescribeMistral(fields, config);
  RopeSpec& rope = config->ropes.front();
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    rope.query_growth =
        fields.Within(name).NumberOr("llama_4_scaling_beta", 0, 1e6, rope.query_growth);
  }
  rope.growth_step = static_cast<int>(rope.scaling.original_positions);
}

// Some of its layers do not rotate: every fourth, unless the list says otherwise.
void DescribeSmolLm3(ConfigFields& fields, ModelConfig* config) {
  const int every = fields.IntOr("no_rope_layer_interval", 1, kMaxLayers, 4);
  const Json* rotates = fields.Find("no_rope_layers");
  if (rotates != nullptr && (!rotates->is_array() || rotates->size() != config->layers.size())) {
    return fields.Refuse("no_rope_layers must be a list with 0 or 1 for each layer");
  }
  for (std::size_t i = 0; i < config->layers.size(); ++i) {
    const bool rotated = rotates != nullptr
                             ? (*rotates)[i].is_number() && (*rotates)[i].get<double>() != 0
                             : (i + 1) % Size(every) != 0;
    if (!rotated) config->layers[i].attention.rope = -1;
  }
  // Layers that are not listed by their type have a window where they do not rotate.
  const bool windows = fields.BoolOr("use_sliding_window", false);
  const auto still = [&](int layer) { return windows && config->layers[layer].attention.rope < 0; };
  const int window = fields.IntOr("sliding_window", 1, kMaxPositions, config->max_positions);
  SetWindows(SlidingLayers(fields, config->layer_count(), still), window, config);
}

// In files the two scales of yarn are one, of all numbers, and the other is 1.
void Ministral3FromGguf(const GgufMetadata& metadata, Json* config) {
  if (!config->contains("rope_scaling")) return;
  Json& scaling = (*config)["rope_scaling"];
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

void Ministral3ToGguf(const ModelConfig& config, GgufHeader* header) {
  const RopeSpec& rope = config.ropes.front();
  if (rope.query_growth > 0) {
    header->Set("mistral3.attention.temperature_scale", static_cast<float>(rope.query_growth));
  }
  if (rope.scaling.kind != RopeScaling::Kind::kYarn || rope.scaling.factor <= 1) return;
  // What both scales are there is stretched(1) / stretched(multiplier).
  const double stretch = 0.1 * std::log(rope.scaling.factor);
  const double multiplier = ((1 + stretch) / rope.scaling.attention_factor - 1) / stretch;
  if (multiplier > 0) {
    header->Set("mistral3.rope.scaling.yarn_log_multiplier", static_cast<float>(multiplier));
    header->Erase("mistral3.rope.scaling.yarn_attn_factor");  // Which that says.
  }
}

constexpr TensorName kMixtralNames[] = {
    {"router", "block_sparse_moe.gate", "ffn_gate_inp"},
    {"experts.*.gate", "block_sparse_moe.experts.*.w1", "ffn_gate.*"},
    {"experts.*.up", "block_sparse_moe.experts.*.w3", "ffn_up.*"},
    {"experts.*.down", "block_sparse_moe.experts.*.w2", "ffn_down.*"},
};
bool EveryLayer(int /*layer*/) { return true; }

// Files of this architecture say no window, whatever keys they have.
void MixtralFromGguf(const GgufMetadata& /*metadata*/, Json* config) {
  config->erase("sliding_window");
}

void DescribeMixtral(ConfigFields& fields, ModelConfig* config) {
  DescribeMistral(fields, config);
  SetExperts(fields, {}, config->layers.front().mlp.intermediate, EveryLayer, config);
}

// What their classes have.
constexpr std::string_view kLlamaFields = R"({
    "attention_bias": false, "mlp_bias": false})";
constexpr std::string_view kMistralFields = R"({
    "layer_types": null, "max_position_embeddings": 131072, "num_key_value_heads": 8,
    "sliding_window": 4096})";
constexpr std::string_view kMinistral3Fields = R"({
    "head_dim": 128, "max_position_embeddings": 262144, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-5, "sliding_window": null,
    "rope_parameters": {
      "rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, "beta_fast": 32.0,
      "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1,
      "original_max_position_embeddings": 16384}})";
constexpr std::string_view kSmolLm3Fields = R"({
    "attention_bias": false, "layer_types": null, "max_position_embeddings": 32768,
    "mlp_bias": false, "no_rope_layer_interval": 4, "no_rope_layers": null,
    "num_key_value_heads": 4, "rope_theta": 2000000.0, "sliding_window": null,
    "tie_word_embeddings": true, "use_sliding_window": false})";
constexpr std::string_view kMixtralFields = R"({
    "max_position_embeddings": 131072, "num_experts": null, "num_experts_per_tok": 2,
    "num_key_value_heads": 8, "num_local_experts": 8, "rms_norm_eps": 1e-5,
    "rope_theta": 1000000.0, "sliding_window": null})";

}  // namespace

const Family kLlama = {.name = "llama",
                       .architecture = "LlamaForCausalLM",
                       .gguf = "llama",
                       .neighbours = Neighbours::kInGguf,
                       .fields = kLlamaFields};

const Family kMistral = {.name = "mistral",
                         .architecture = "MistralForCausalLM",
                         .gguf = "llama",
                         .neighbours = Neighbours::kInGguf,
                         .fields = kMistralFields,
                         .describe = DescribeMistral};

const Family kMinistral3 = {.name = "ministral3",
                            .architecture = "Ministral3ForCausalLM",
                            .gguf = "mistral3",
                            .neighbours = Neighbours::kInGguf,
                            .fields = kMinistral3Fields,
                            .describe = DescribeMinistral3,
                            .gguf_fields = Ministral3FromGguf,
                            .gguf_keys = Ministral3ToGguf};

const Family kSmolLm3 = {.name = "smollm3",
                         .architecture = "SmolLM3ForCausalLM",
                         .gguf = "smollm3",
                         .neighbours = Neighbours::kInGguf,
                         .fields = kSmolLm3Fields,
                         .describe = DescribeSmolLm3};

const Family kMixtral = {.name = "mixtral",
                         .architecture = "MixtralForCausalLM",
                         .gguf = "llama",
                         .names = kMixtralNames,
                         .neighbours = Neighbours::kInGguf,
                         .gguf_has_experts = true,
                         .fields = kMixtralFields,
                         .describe = DescribeMixtral,
                         .gguf_fields = MixtralFromGguf};

}  // namespace foretoken
