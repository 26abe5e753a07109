#include "core/model/config/named_shapes.h"

#include <fmt/core.h>

#include <array>

namespace foretoken {
namespace {

struct NamedShapeRow {
  std::string_view name;
  int hidden, intermediate, layers, heads, kv_heads, head_dim, vocabulary;
  double rope_theta;
  bool tied;
  int experts = 0, chosen = 0;  // Where it has them, `intermediate` is that of each.
};

// Shapes of published models, and drafts for them. Parameters in millions; a pass over one row
// reads them all, but for the embedding table of an untied model.
constexpr std::array kShapes = {
    // SmolLM2-135M: 134.5
    NamedShapeRow{"llama-135m", 576, 1536, 30, 9, 3, 64, 49152, 1e5, true},
    // SmolLM2-360M: 361.8
    NamedShapeRow{"llama-360m", 960, 2560, 32, 15, 5, 64, 49152, 1e5, true},
    // Llama-3.2-1B: 1235.8
    NamedShapeRow{"llama-1b", 2048, 8192, 16, 32, 8, 64, 128256, 5e5, true},
    // Llama-3.1-8B: 8030.3, of which 7504.9 are read
    NamedShapeRow{"llama-8b", 4096, 14336, 32, 32, 8, 128, 128256, 5e5, false},
    // 0.090 of llama-135m, most of it in the lm head: 12.1
    NamedShapeRow{"draft-12m", 192, 512, 6, 3, 3, 64, 49152, 1e5, true},
    // 0.141 of llama-135m, and a tenth of its time on a machine whose last-level cache, which holds
    // this one, is a half faster than its memory: 19.0
    NamedShapeRow{"draft-19m", 256, 704, 8, 4, 4, 64, 49152, 1e5, true},
    // 0.090 of llama-1b, with its vocabulary: 111.1
    NamedShapeRow{"draft-111m", 768, 2048, 2, 12, 4, 64, 128256, 5e5, true},
    // As many experts and as many chosen as in OLMoE-1B-7B, of a tenth of its size: 669.0, of which
    // 140.5 are read
    NamedShapeRow{"moe-669m", 1024, 256, 12, 16, 4, 64, 32000, 1e5, true, 64, 8},
};

}  // namespace

Result<ModelConfig> NamedShape(std::string_view name) {
  std::string known;
  for (const NamedShapeRow& row : kShapes) {
    if (row.name == name) {
      ModelConfig config = LlamaConfig({.hidden = row.hidden,
                                        .intermediate = row.intermediate,
                                        .layers = row.layers,
                                        .heads = row.heads,
                                        .kv_heads = row.kv_heads,
                                        .head_dim = row.head_dim,
                                        .vocabulary = row.vocabulary,
                                        .max_positions = 8192,
                                        .rope_theta = row.rope_theta,
                                        .tied_embeddings = row.tied});
      config.bos = 1;
      config.eos = {2};
      for (LayerSpec& layer : config.layers) {
        layer.mlp.routing = {.experts = row.experts, .chosen = row.chosen};
      }
      return config;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  return Invalid("there is no shape '{}'; known shapes are {}", name, known);
}

}  // namespace foretoken
