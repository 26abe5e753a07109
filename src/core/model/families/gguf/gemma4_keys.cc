#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/model/families/gguf/own_keys.h"

namespace foretoken {

// Files say of heads what those of layers without a window have, and what layers have is in lists.
void Gemma4FromGguf(const GgufMetadata& metadata, Json* config) {
  const auto integer = [&](const char* key, const char* field) {
    std::int64_t value = -1;
    const bool read = metadata.Integer(fmt::format("gemma4.{}", key), 0, kMaxHidden, &value).ok();
    if (read && value >= 0) (*config)[field] = value;
  };
  (*config)["hidden_activation"] = "gelu_pytorch_tanh";
  (*config)["global_head_dim"] = config->value("head_dim", 512);
  integer("attention.key_length_swa", "head_dim");
  integer("attention.shared_kv_layers", "num_kv_shared_layers");
  (*config)["hidden_size_per_layer_input"] = 0;
  integer("embedding_length_per_layer_input", "hidden_size_per_layer_input");
  const Json none = Json::array();
  const auto types = config->value("layer_types", none);
  const auto kv_heads = config->value("num_key_value_heads_of_layers", none);
  for (std::size_t i = 0; i < std::min(types.size(), kv_heads.size()); ++i) {
    const bool full = types[i] == "full_attention";
    (*config)[full ? "num_global_key_value_heads" : "num_key_value_heads"] = kv_heads[i];
  }
  (*config)["enable_moe_block"] = config->value("num_local_experts", 0) > 0;
  const auto widths = config->value("intermediate_size_of_layers", none);
  if (!widths.empty()) (*config)["use_double_wide_mlp"] = widths.back() != widths.front();
  Json full = config->value("rope_scaling", Json::object());
  full["rope_theta"] = config->value("rope_theta", 1e6);
  const Json local = {{"rope_theta", config->value("rope_local_base_freq", 1e4)}};
  (*config)["rope_parameters"] = {{"full_attention", full}, {"sliding_attention", local}};
  for (const char* name : {"rope_scaling", "rotary_dims"}) config->erase(name);
}

namespace {

// What each layer has, as one number where all have the same.
void SetOfLayers(const std::string& key, const ModelConfig& config,
                 int (*number)(const LayerSpec& layer), GgufHeader* header) {
  std::vector<std::int32_t> numbers;
  for (const LayerSpec& layer : config.layers) numbers.push_back(number(layer));
  if (std::ranges::count(numbers, numbers.front()) == std::ssize(numbers)) {
    header->Set(key, static_cast<std::uint32_t>(numbers.front()));
  } else {
    header->Set(key, std::span<const std::int32_t>(numbers));
  }
}

bool Slides(const LayerSpec& layer) { return layer.attention.rope == 1; }

}  // namespace

void Gemma4ToGguf(const ModelConfig& config, GgufHeader* header) {
  const auto key = [](const char* name) { return fmt::format("gemma4.{}", name); };
  const auto set = [&](const char* name, int value) {
    header->Set(key(name), static_cast<std::uint32_t>(value));
  };
  std::vector<bool> sliding;
  int window = 0;
  int shared = 0;
  for (const LayerSpec& layer : config.layers) {
    sliding.push_back(Slides(layer));
    window = std::max(window, layer.attention.window);
    shared += layer.attention.kv_from >= 0 ? 1 : 0;
  }
  header->SetFlags(key("attention.sliding_window_pattern"), sliding);
  set("attention.sliding_window", window == 0 ? config.max_positions : window);
  set("attention.shared_kv_layers", shared);
  for (const auto& [of_layers, ending] : {std::pair{false, ""}, std::pair{true, "_swa"}}) {
    const auto layer = std::ranges::find(config.layers, of_layers, Slides);
    const RopeSpec& rope = config.ropes[of_layers ? 1 : 0];
    const int width = layer == config.layers.end() ? rope.dims : layer->attention.head_dim;
    for (const char* name : {"attention.key_length", "attention.value_length"}) {
      header->Set(key(name) + ending, static_cast<std::uint32_t>(width));
    }
    header->Set(key("rope.dimension_count") + ending, static_cast<std::uint32_t>(rope.dims));
  }
  SetOfLayers(
      key("attention.head_count_kv"), config,
      [](const LayerSpec& layer) { return layer.attention.kv_heads; }, header);
  SetOfLayers(
      key("feed_forward_length"), config,
      [](const LayerSpec& layer) {
        return layer.mlp.apart ? layer.mlp.shared_intermediate : layer.mlp.intermediate;
      },
      header);
  set("embedding_length_per_layer_input", config.layer_input);
  for (const char* name : {"attention.scale", "expert_shared_feed_forward_length",
                           "rope.scaling.original_context_length"}) {
    header->Erase(key(name));
  }
}

}  // namespace foretoken
