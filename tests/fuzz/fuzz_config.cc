#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/model/decoder/rope.h"
#include "core/model/families/read_config.h"

// config.json, and the same text as generation_config.json. A configuration that is accepted must
// keep what the model's arithmetic relies on.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto config = foretoken::ParseModelConfig(text, "fuzz");
  if (!config.ok()) {
    if (config.error().message.empty()) std::abort();
    return 0;
  }
  if (config->hidden < 1 || config->layers.empty() || config->vocabulary < 1 ||
      config->parameters() <= 0) {
    std::abort();
  }
  for (const foretoken::LayerSpec& layer : config->layers) {
    if (layer.is_recurrent()) {
      if (layer.delta.value_heads % layer.delta.key_heads != 0 || layer.mlp.intermediate < 1) {
        std::abort();
      }
      continue;
    }
    const foretoken::AttentionSpec& attention = layer.attention;
    if (attention.heads % attention.kv_heads != 0 || attention.head_dim % 2 != 0 ||
        attention.window < 0 || attention.window > config->max_positions ||
        !std::isfinite(attention.scale) || layer.mlp.intermediate < 1 ||
        attention.rope >= std::ssize(config->ropes)) {
      std::abort();
    }
    if (attention.rope >= 0 &&
        config->ropes[attention.rope].dims > attention.head_dim - attention.latent.kv_rank) {
      std::abort();
    }
    if (attention.kv_from >= &layer - config->layers.data()) std::abort();
    if (attention.kv_from < 0) continue;
    // What is read is as wide as what reads it.
    const foretoken::AttentionSpec& source = config->layers[attention.kv_from].attention;
    if (source.kv_from >= 0 || source.head_dim != attention.head_dim ||
        source.kv_heads != attention.kv_heads) {
      std::abort();
    }
  }
  for (const foretoken::RopeSpec& rope : config->ropes) {
    if (rope.dims < 2) std::abort();
    for (const double frequency : foretoken::RopeFrequencies(rope)) {
      if (!std::isfinite(frequency) || frequency < 0) std::abort();
    }
  }
  const auto status = foretoken::ApplyGenerationConfig(text, "fuzz", &*config);
  for (const foretoken::Token token : config->eos) {
    if (token < 0 || token >= config->vocabulary) std::abort();
  }
  // The fields it reads were accepted a moment ago.
  if (!status.ok()) std::abort();
  return 0;
}
