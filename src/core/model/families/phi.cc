#include "core/model/families/family.h"

namespace foretoken {
namespace {

constexpr TensorName kPhiNames[] = {
    {"qkv", "self_attn.qkv_proj", "attn_qkv"},
    {"gate_up", "mlp.gate_up_proj", "ffn_up"},
};

// What the class has.
constexpr std::string_view kPhiFields = R"({
    "max_position_embeddings": 4096, "original_max_position_embeddings": 4096,
    "partial_rotary_factor": 1.0, "rms_norm_eps": 1e-5, "sliding_window": null})";

void DescribePhi3(ConfigFields& fields, ModelConfig* config) {
  const RopeScaling::Kind kind = config->ropes.front().scaling.kind;
  if (kind != RopeScaling::Kind::kNone && kind != RopeScaling::Kind::kFactors) {
    fields.Refuse("has a rotation that is scaled otherwise than by longrope");
  }
  const int window = fields.IntOr("sliding_window", 1, kMaxPositions, config->max_positions);
  const auto all = [](int) { return true; };
  SetWindows(SlidingLayers(fields, config->layer_count(), all), window, config);
}

}  // namespace

const Family kPhi3 = {.name = "phi3",
                      .architecture = "Phi3ForCausalLM",
                      .gguf = "phi3",
                      .names = kPhiNames,
                      .fields = kPhiFields,
                      .describe = DescribePhi3};

}  // namespace foretoken
