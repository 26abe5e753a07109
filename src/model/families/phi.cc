#include "model/families/family.h"

namespace foretoken {
namespace {

constexpr TensorName kNames[] = {
    {"qkv", "self_attn.qkv_proj", "attn_qkv"},
    {"gate_up", "mlp.gate_up_proj", "ffn_up"},
};

void DescribePhi3(ConfigFields& fields, ModelConfig* config) {
  const int window = fields.IntOr("sliding_window", 1, kMaxPositions, config->max_positions);
  const auto all = [](int) { return true; };
  SetWindows(SlidingLayers(fields, config->layer_count(), all), window, config);
}

}  // namespace

const Family kPhi3 = {.name = "phi3",
                      .architecture = "Phi3ForCausalLM",
                      .gguf = "phi3",
                      .names = kNames,
                      .describe = DescribePhi3};

}  // namespace foretoken
