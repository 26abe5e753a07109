#include <algorithm>
#include <vector>

#include "model/families/family.h"

namespace foretoken {
namespace {

void SetWindowsWhereAsked(ConfigFields& fields, ModelConfig* config) {
  if (!fields.BoolOr("use_sliding_window", false)) return;
  const int window = fields.IntOr("sliding_window", 1, kMaxPositions, config->max_positions);
  const int full = fields.IntOr("max_window_layers", 0, kMaxLayers, config->layer_count());
  const auto behind = [full](int layer) { return layer >= full; };
  SetWindows(SlidingLayers(fields, config->layer_count(), behind), window, config);
}

// Queries, keys and values always have a bias.
void DescribeQwen2(ConfigFields& fields, ModelConfig* config) {
  for (LayerSpec& layer : config->layers) {
    layer.attention.qkv_bias = true;
    layer.attention.output_bias = false;
  }
  SetWindowsWhereAsked(fields, config);
}

void DescribeQwen3(ConfigFields& fields, ModelConfig* config) {
  for (LayerSpec& layer : config->layers) {
    layer.attention.qk_norm = AttentionSpec::QkNorm::kEachHead;
  }
  SetWindowsWhereAsked(fields, config);
}

void DescribeQwen2Moe(ConfigFields& fields, ModelConfig* config) {
  const bool biased = fields.BoolOr("qkv_bias", true);
  for (LayerSpec& layer : config->layers) {
    layer.attention.qkv_bias = biased;
    layer.attention.output_bias = false;
  }
  SetWindowsWhereAsked(fields, config);
  SetQwenExperts(fields, config);
  const int shared = fields.Integer("shared_expert_intermediate_size", 1, kMaxIntermediate);
  if (fields.ok()) SetShared(shared, true, config);
}

void DescribeQwen3Moe(ConfigFields& fields, ModelConfig* config) {
  DescribeQwen3(fields, config);
  SetQwenExperts(fields, config);
}

// There all layers have experts and all weights are normalised.
void Qwen3MoeFromGguf(const GgufMetadata& /*metadata*/, ConfigFields::Json* config) {
  (*config)["norm_topk_prob"] = true;
}

}  // namespace

// Layers have experts unless they are named or fall out of the step.
void SetQwenExperts(ConfigFields& fields, ModelConfig* config) {
  const int step = fields.IntOr("decoder_sparse_step", 1, kMaxLayers, 1);
  const int width = fields.Integer("moe_intermediate_size", 1, kMaxIntermediate);
  std::vector<int> dense;
  if (const ConfigFields::Json* list = fields.Find("mlp_only_layers")) {
    if (!list->is_array() ||
        !std::ranges::all_of(*list, [](const auto& each) { return each.is_number_unsigned(); })) {
      return fields.Refuse("mlp_only_layers must be a list of numbers of layers");
    }
    for (const auto& each : *list) dense.push_back(each.template get<int>());
  }
  const bool normalised = fields.BoolOr("norm_topk_prob", false);
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
                       .describe = DescribeQwen2};

// Qwen 2's network; beside it lies a layer that guesses further tokens. GGUF files call it qwen2.
const Family kMimo = {
    .name = "mimo", .architecture = "MiMoForCausalLM", .gguf = "qwen2", .describe = DescribeQwen2};

const Family kQwen3 = {.name = "qwen3",
                       .architecture = "Qwen3ForCausalLM",
                       .gguf = "qwen3",
                       .describe = DescribeQwen3};

const Family kQwen2Moe = {.name = "qwen2_moe",
                          .architecture = "Qwen2MoeForCausalLM",
                          .gguf = "qwen2moe",
                          .describe = DescribeQwen2Moe};

const Family kQwen3Moe = {.name = "qwen3_moe",
                          .architecture = "Qwen3MoeForCausalLM",
                          .gguf = "qwen3moe",
                          .describe = DescribeQwen3Moe,
                          .gguf_fields = Qwen3MoeFromGguf};

}  // namespace foretoken
