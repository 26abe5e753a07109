#include <algorithm>
#include <string>
#include <vector>

#include "core/model/families/family.h"

namespace foretoken {
namespace {

// Multipliers of the embedding, of what layers add, of scores and (the other way round) of logits.
void DescribeGranite(ConfigFields& fields, ModelConfig* config) {
  constexpr double kMost = 1e6;
  const auto number = [&](const char* name, double otherwise) {
    return fields.NumberOr(name, 1e-6, kMost, otherwise);
  };
  config->embedding_scale = static_cast<float>(number("embedding_multiplier", 1));
  config->block.scale = static_cast<float>(number("residual_multiplier", 1));
  config->logit_scale = static_cast<float>(1 / number("logits_scaling", 1));
  const Json* positions = fields.Find("position_embedding_type");
  for (LayerSpec& layer : config->layers) {
    layer.attention.scale = number("attention_multiplier", layer.attention.scale);
    if (positions != nullptr && *positions != "rope") layer.attention.rope = -1;
  }
}

// There the number by which logits are divided is called a scale, too, and rotations that were not
// trained are not made.
void GraniteFromGguf(const GgufMetadata& metadata, Json* config) {
  std::string architecture;
  if (!metadata.String("general.architecture", &architecture).ok()) return;
  double scale = 0;
  if (metadata.Number(architecture + ".logit_scale", &scale).ok() && scale > 0) {
    (*config)["logits_scaling"] = static_cast<float>(scale);
  }
  bool trained = true;
  if (metadata.Flag(architecture + ".rope.scaling.finetuned", &trained).ok() && !trained) {
    (*config)["position_embedding_type"] = "nope";
  }
}

void GraniteToGguf(const ModelConfig& config, GgufHeader* header) {
  const std::string architecture(FamilyNamed(config.family)->gguf);
  header->Set(architecture + ".logit_scale", 1 / config.logit_scale);
  if (config.layers.front().attention.rope < 0) {
    header->Set(architecture + ".rope.scaling.finetuned", false);
  }
}

constexpr TensorName kGraniteMoeNames[] = {
    {"router", "block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"experts.gate_up", "block_sparse_moe.input_linear", ""},
    {"experts.down", "block_sparse_moe.output_linear", "ffn_down_exps"},
    // As transformers 5 has them within.
    {"router", "block_sparse_moe.router", "ffn_gate_inp"},
    {"experts.gate_up.weight", "block_sparse_moe.experts.gate_up_proj", ""},
    {"experts.down.weight", "block_sparse_moe.experts.down_proj", ""},
    {"shared.gate_up", "shared_mlp.input_linear", ""},
    {"shared.down", "shared_mlp.output_linear", "ffn_down_shexp"},
};

// In models without experts the expert that rows would share is the MLP.
constexpr TensorName kGraniteHybridNames[] = {
    {"gate_up", "shared_mlp.input_linear", ""},
    {"down", "shared_mlp.output_linear", "ffn_down"},
};

// What the classes have.
constexpr std::string_view kGraniteFields = R"({
    "attention_bias": false, "attention_multiplier": 1.0, "embedding_multiplier": 1.0,
    "logits_scaling": 1.0, "residual_multiplier": 1.0, "mlp_bias": false})";
constexpr std::string_view kGraniteMoeFields = R"({
    "attention_bias": false, "attention_multiplier": 1.0, "embedding_multiplier": 1.0,
    "logits_scaling": 1.0, "residual_multiplier": 1.0,
    "num_experts_per_tok": 2, "num_local_experts": 8})";
constexpr std::string_view kGraniteMoeSharedFields = R"({
    "attention_bias": false, "attention_multiplier": 1.0, "embedding_multiplier": 1.0,
    "logits_scaling": 1.0, "residual_multiplier": 1.0,
    "num_experts_per_tok": 2, "num_local_experts": 8, "shared_intermediate_size": 0})";
constexpr std::string_view kGraniteHybridFields = R"({
    "attention_bias": false, "attention_multiplier": 1.0, "embedding_multiplier": 1.0,
    "logits_scaling": 1.0, "residual_multiplier": 1.0,
    "intermediate_size": 11008, "layer_types": null, "layers_block_type": null,
    "num_experts_per_tok": 2, "num_local_experts": 8, "position_embedding_type": null,
    "shared_intermediate_size": 1024})";

// In files models with a shared expert are called as those without.
void DescribeGraniteMoe(ConfigFields& fields, ModelConfig* config) {
  DescribeGranite(fields, config);
  const auto every = [](int) { return true; };
  SetExperts(fields, {}, config->layers.front().mlp.intermediate, every, config);
  SetShared(fields.IntOr("shared_intermediate_size", 0, kMaxIntermediate, 0), false, config);
}

// Granite 4. Those of its models that mix in state space layers have experts as well.
void DescribeGraniteHybrid(ConfigFields& fields, ModelConfig* config) {
  DescribeGranite(fields, config);
  const char* name = fields.Has("layers_block_type") ? "layers_block_type" : "layer_types";
  const std::vector<std::string> types = fields.Strings(name, config->layers.size());
  const auto attends = [](const std::string& type) {
    return type == "attention" || type == "full_attention";  // The latter since transformers 5.24.
  };
  if (fields.ok() && (types.empty() || !std::ranges::all_of(types, attends))) {
    fields.Refuse(
        "has layers that are not attention (layer_types), but of Granite 4 only models of "
        "attention are supported");
  }
  if (fields.IntOr("num_local_experts", 0, kMaxExperts, 8) != 0) {
    fields.Refuse(
        "has experts (num_local_experts), but of Granite 4 only models without are supported");
  }
  const int width = fields.IntOr("shared_intermediate_size", 1, kMaxIntermediate, 1024);
  const bool rotates = fields.Find("position_embedding_type") != nullptr;
  for (LayerSpec& layer : config->layers) {
    layer.mlp.intermediate = width;
    if (!rotates) layer.attention.rope = -1;
  }
}

}  // namespace

const Family kGranite = {.name = "granite",
                         .architecture = "GraniteForCausalLM",
                         .gguf = "granite",
                         .neighbours = Neighbours::kInGguf,
                         .fields = kGraniteFields,
                         .describe = DescribeGranite,
                         .gguf_fields = GraniteFromGguf,
                         .gguf_keys = GraniteToGguf};

const Family kGraniteMoe = {.name = "granitemoe",
                            .architecture = "GraniteMoeForCausalLM",
                            .gguf = "granitemoe",
                            .names = kGraniteMoeNames,
                            .neighbours = Neighbours::kInGguf,
                            .fields = kGraniteMoeFields,
                            .describe = DescribeGraniteMoe,
                            .gguf_fields = GraniteFromGguf,
                            .gguf_keys = GraniteToGguf};

const Family kGraniteMoeShared = {.name = "granitemoeshared",
                                  .architecture = "GraniteMoeSharedForCausalLM",
                                  .gguf = "granitemoe",
                                  .names = kGraniteMoeNames,
                                  .neighbours = Neighbours::kInGguf,
                                  .fields = kGraniteMoeSharedFields,
                                  .describe = DescribeGraniteMoe,
                                  .gguf_fields = GraniteFromGguf,
                                  .gguf_keys = GraniteToGguf};

const Family kGraniteHybrid = {.name = "granitemoehybrid",
                               .architecture = "GraniteMoeHybridForCausalLM",
                               .gguf = "granite",
                               .names = kGraniteHybridNames,
                               .neighbours = Neighbours::kInGguf,
                               .fields = kGraniteHybridFields,
                               .describe = DescribeGraniteHybrid,
                               .gguf_fields = GraniteFromGguf,
                               .gguf_keys = GraniteToGguf};

}  // namespace foretoken
