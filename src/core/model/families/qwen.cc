#include <algorithm>
#include <functional>
#include <vector>

#include "core/model/families/family.h"

namespace foretoken {
namespace {

// Where windows are asked for, those layers see one that are listed so or, without a list, that
// `otherwise` says.
void SetWindowsWhereAsked(ConfigFields& fields, const std::function<bool(int layer)>& otherwise,
                          ModelConfig* config) {
  const std::vector<bool> sliding = SlidingLayers(fields, config->layer_count(), otherwise);
  if (!fields.BoolOr("use_sliding_window", false)) return;
  const int window = fields.IntOr("sliding_window", 1, kMaxPositions, config->max_positions);
  SetWindows(sliding, window, config);
}

// All layers but the first ones.
void SetWindowsBehind(ConfigFields& fields, ModelConfig* config) {
  const int full = fields.IntOr("max_window_layers", 0, kMaxLayers, config->layer_count());
  SetWindowsWhereAsked(
      fields, [full](int layer) { return layer >= full; }, config);
}

// Queries, keys and values always have a bias.
void DescribeQwen2(ConfigFields& fields, ModelConfig* config) {
  for (LayerSpec& layer : config->layers) {
    layer.attention.qkv_bias = true;
    layer.attention.output_bias = false;
  }
  SetWindowsBehind(fields, config);
}

void NormaliseHeads(ModelConfig* config) {
  for (LayerSpec& layer : config->layers) {
    layer.attention.qk_norm = AttentionSpec::QkNorm::kEachHead;
  }
}

void DescribeQwen3(ConfigFields& fields, ModelConfig* config) {
  NormaliseHeads(config);
  SetWindowsBehind(fields, config);
}

// Windows are those of every second layer among the first ones.
void DescribeQwen2Moe(ConfigFields& fields, ModelConfig* config) {
  const bool biased = fields.BoolOr("qkv_bias", true);
  for (LayerSpec& layer : config->layers) {
    layer.attention.qkv_bias = biased;
    layer.attention.output_bias = false;
  }
  const int windowed = fields.IntOr("max_window_layers", 0, kMaxLayers, config->layer_count());
  SetWindowsWhereAsked(
      fields, [windowed](int layer) { return layer % 2 == 0 && layer < windowed; }, config);
  SetQwenExperts(fields, /*normalised=*/false, config);
  const int shared = fields.Integer("shared_expert_intermediate_size", 1, kMaxIntermediate);
  if (fields.ok()) SetShared(shared, true, config);
}

// Windows are those of all layers.
void DescribeQwen3Moe(ConfigFields& fields, ModelConfig* config) {
  NormaliseHeads(config);
  SetWindowsWhereAsked(
      fields, [](int) { return true; }, config);
  SetQwenExperts(fields, /*normalised=*/false, config);
}

// There all layers have experts and all weights are normalised.
void Qwen3MoeFromGguf(const GgufMetadata& /*metadata*/, Json* config) {
  (*config)["norm_topk_prob"] = true;
}

// What their classes have.
constexpr std::string_view kQwen2Fields = R"({
    "layer_types": null, "max_position_embeddings": 32768, "max_window_layers": 28,
    "num_key_value_heads": 32, "sliding_window": 4096, "use_sliding_window": false})";
constexpr std::string_view kQwen3Fields = R"({
    "attention_bias": false, "head_dim": 128, "layer_types": null,
    "max_position_embeddings": 32768, "max_window_layers": 28, "num_key_value_heads": 32,
    "sliding_window": 4096, "use_sliding_window": false})";
constexpr std::string_view kQwen2MoeFields = R"({
    "decoder_sparse_step": 1, "intermediate_size": 5632, "layer_types": null,
    "max_position_embeddings": 32768, "max_window_layers": 28, "mlp_only_layers": null,
    "moe_intermediate_size": 1408, "norm_topk_prob": false, "num_experts": 60,
    "num_experts_per_tok": 4, "num_key_value_heads": 16, "qkv_bias": true,
    "shared_expert_intermediate_size": 5632, "sliding_window": 4096,
    "use_sliding_window": false})";
constexpr std::string_view kQwen3MoeFields = R"({
    "attention_bias": false, "decoder_sparse_step": 1, "intermediate_size": 6144,
    "max_position_embeddings": 32768, "mlp_only_layers": null, "moe_intermediate_size": 768,
    "norm_topk_prob": false, "num_experts": null, "num_experts_per_tok": 8,
    "num_key_value_heads": 4, "num_local_experts": 128, "sliding_window": 4096,
    "use_sliding_window": false})";

}  // namespace

// Layers have experts unless they are named or fall out of the step.
void SetQwenExperts(ConfigFields& fields, bool normalised, ModelConfig* config) {
  const int step = fields.IntOr("decoder_sparse_step", 1, kMaxLayers, 1);
  const int width = fields.Integer("moe_intermediate_size", 1, kMaxIntermediate);
  std::vector<int> dense;
  if (const Json* list = fields.Find("mlp_only_layers")) {
    if (!list->is_array() ||
        !std::ranges::all_of(*list, [](const auto& each) { return each.is_number_unsigned(); })) {
      return fields.Refuse("mlp_only_layers must be a list of numbers of layers");
    }
    for (const auto& each : *list) dense.push_back(each.template get<int>());
  }
  normalised = fields.BoolOr("norm_topk_prob", normalised);
  const Routing routing{.weights = normalised ? Routing::Weights::kSoftmaxOfChosen
                                              : Routing::Weights::kSoftmaxOfAll};
  const auto sparse = [&](int layer) {
    return std::ranges::find(dense, layer) == dense.end() && (layer + 1) % step == 0;
  };
  if (fields.ok()) SetExperts(fields, routing, width, sparse, config);
}

const Family kQwen2 = {.name = "qwen2",
                       .architecture = "Qwen2ForCausalLM",
                       .gguf = "qwen2",
                       .fields = kQwen2Fields,
                       .describe = DescribeQwen2};

// Qwen 2's network; beside it lies a layer that guesses further tokens. GGUF files call it qwen2.
const Family kMimo = {.name = "mimo",
                      .architecture = "MiMoForCausalLM",
                      .gguf = "qwen2",
                      .fields = kQwen2Fields,
                      .describe = DescribeQwen2};

const Family kQwen3 = {.name = "qwen3",
                       .architecture = "Qwen3ForCausalLM",
                       .gguf = "qwen3",
                       .fields = kQwen3Fields,
                       .describe = DescribeQwen3};

const Family kQwen2Moe = {.name = "qwen2_moe",
                          .architecture = "Qwen2MoeForCausalLM",
                          .gguf = "qwen2moe",
                          .fields = kQwen2MoeFields,
                          .describe = DescribeQwen2Moe};

const Family kQwen3Moe = {.name = "qwen3_moe",
                          .architecture = "Qwen3MoeForCausalLM",
                          .gguf = "qwen3moe",
                          .fields = kQwen3MoeFields,
                          .describe = DescribeQwen3Moe,
                          .gguf_fields = Qwen3MoeFromGguf};

}  // namespace foretoken
