#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/model/families/family.h"
#include "core/tensor/tensor_view.h"

namespace foretoken {
namespace {

// The order in which outputs of experts are kept: as they are, or in turns, those of the gate at
// even places and those that it is multiplied with at odd ones. What is made has the gate's first.
enum class Outputs { kInOrder, kInTurns };

// Where the output lies that becomes number `output` of `count`.
std::int64_t PlaceOf(std::int64_t output, std::int64_t count, Outputs outputs) {
  if (outputs == Outputs::kInOrder) return output;
  const std::int64_t half = count / 2;
  return output < half ? 2 * output : 2 * (output - half) + 1;
}

// Matrices [experts, inputs, outputs] of floats as [experts, outputs, inputs].
std::vector<std::byte> Transposed(const TensorView& stacked, Outputs outputs) {
  const std::int64_t experts = stacked.shape[0];
  const std::int64_t inputs = stacked.shape[1];
  const std::int64_t count = stacked.shape[2];
  const std::size_t size = FormatBytes(stacked.format, 1);
  std::vector<std::byte> made(stacked.bytes());
  std::byte* to = made.data();
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    const std::byte* const matrix =
        stacked.data + FormatBytes(stacked.format, expert * inputs * count);
    for (std::int64_t output = 0; output < count; ++output) {
      const std::byte* from = matrix + FormatBytes(stacked.format, PlaceOf(output, count, outputs));
      const std::size_t step = FormatBytes(stacked.format, count);
      for (std::int64_t i = 0; i < inputs; ++i, from += step, to += size) {
        std::memcpy(to, from, size);
      }
    }
  }
  return made;
}

// Biases [experts, outputs] or matrices [experts, outputs, inputs] in any format, whose outputs
// are in turns, in order.
std::vector<std::byte> InOrder(const TensorView& stacked) {
  const std::int64_t count = stacked.shape[1];
  const std::size_t size =
      FormatBytes(stacked.format, stacked.shape.size() > 2 ? stacked.shape[2] : 1);
  std::vector<std::byte> made(stacked.bytes());
  std::byte* to = made.data();
  for (std::int64_t expert = 0; expert < stacked.shape[0]; ++expert) {
    for (std::int64_t output = 0; output < count; ++output, to += size) {
      const std::int64_t place = expert * count + PlaceOf(output, count, Outputs::kInTurns);
      std::memcpy(to, stacked.data + place * size, size);
    }
  }
  return made;
}

// Folders keep the weights of experts transposed and their gates in turns; those become what the
// second row of each pair says.
constexpr TensorName kGptOssNames[] = {
    {"mlp_norm", "post_attention_layernorm", "post_attention_norm"},
    {"sinks.weight", "self_attn.sinks", "attn_sinks.weight"},
    {"router", "mlp.router", "ffn_gate_inp"},
    {"experts.gate_up.turned", "mlp.experts.gate_up_proj", ""},
    {"experts.gate_up.weight", "mlp.experts.gate_up_proj", ""},
    {"experts.gate_up.turns", "mlp.experts.gate_up_proj_bias", ""},
    {"experts.gate_up.bias", "mlp.experts.gate_up_proj_bias", ""},
    {"experts.down.turned", "mlp.experts.down_proj", ""},
    {"experts.down.weight", "mlp.experts.down_proj", ""},
    {"experts.down.bias", "mlp.experts.down_proj_bias", ""},
};

// The slope of kClampedSwish.
constexpr double kSwishSlope = 1.702;

// What the class has.
constexpr std::string_view kGptOssFields = R"({
    "attention_bias": true, "head_dim": 64, "layer_types": null,
    "max_position_embeddings": 131072, "num_experts": null, "num_experts_per_tok": 4,
    "num_key_value_heads": 8, "num_local_experts": 128, "rms_norm_eps": 1e-5,
    "rope_theta": 150000.0, "sliding_window": 128, "swiglu_alpha": 1.702, "swiglu_limit": 7.0,
    "rope_parameters": {
      "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
      "truncate": false, "original_max_position_embeddings": 4096}})";

// Numbers of the activation that are not what it is computed with here.
void RefuseOtherActivation(ConfigFields& fields) {
  constexpr std::pair<const char*, double> kSupported[] = {{"swiglu_limit", kSwishLimit},
                                                           {"swiglu_alpha", kSwishSlope}};
  for (const auto& [name, supported] : kSupported) {
    const double value = fields.NumberOr(name, -1e6, 1e6, supported);
    if (std::abs(value - supported) <= 1e-6) continue;
    fields.Refuse("{} is {}, but only {} is supported", name, value, supported);
  }
}

// Every second layer sees a window, heads have sinks, and gates are clamped.
void DescribeGptOss(ConfigFields& fields, ModelConfig* config) {
  const int window = fields.IntOr("sliding_window", 1, kMaxPositions, 128);
  const auto even = [](int layer) { return layer % 2 == 0; };
  SetWindows(SlidingLayers(fields, config->layer_count(), even), window, config);
  for (LayerSpec& layer : config->layers) {
    layer.attention.sinks = true;
    layer.mlp.activation = Activation::kClampedSwish;
    layer.mlp.bias = true;
    layer.mlp.router_bias = true;
  }
  RefuseOtherActivation(fields);
  const auto every = [](int) { return true; };
  SetExperts(fields, {}, config->layers.front().mlp.intermediate, every, config);
}

// The frequencies between those that are stretched and those that are not are not rounded to whole
// numbers, which GGUF files do not say.
void GptOssFromGguf(const GgufMetadata& /*metadata*/, Json* config) {
  if (config->contains("rope_scaling")) (*config)["rope_scaling"]["truncate"] = false;
}

// `name` becomes `arranged`, of that shape and, unless `make` is null, made so when it is read.
void Arrange(const std::string& name, const std::string& arranged, std::vector<std::int64_t> shape,
             std::vector<std::byte> (*make)(const TensorView& stacked), Checkpoint* checkpoint) {
  const TensorView view = checkpoint->tensors.extract(name).mapped();
  checkpoint->tensors[arranged] = {view.format, std::move(shape), nullptr};
  Checkpoint::Arrangement& arrangement = checkpoint->arranged[arranged];
  auto before = checkpoint->arranged.extract(name);
  if (before.empty()) {
    arrangement = {{{view.data, view.bytes()}}, [make, view] { return make(view); }};
  } else if (make == nullptr) {
    arrangement = std::move(before.mapped());
  } else {  // Blocks are made first.
    arrangement = {before.mapped().pieces, [make, view, blocks = before.mapped().make] {
                     const std::vector<std::byte> made = blocks();
                     return make({view.format, view.shape, made.data()});
                   }};
  }
}

std::vector<std::byte> TransposedInTurns(const TensorView& stacked) {
  return Transposed(stacked, Outputs::kInTurns);
}
std::vector<std::byte> TransposedInOrder(const TensorView& stacked) {
  return Transposed(stacked, Outputs::kInOrder);
}

// Floats are kept transposed, blocks are not.
Status ArrangeGptOss(Checkpoint* checkpoint) {
  std::vector<std::pair<std::string, TensorView>> turned;
  for (const auto& tensor : checkpoint->tensors) turned.push_back(tensor);
  for (const auto& [name, view] : turned) {
    const auto stem = name.substr(0, name.rfind('.'));
    const bool matrices = name.ends_with(".turned");
    if (!matrices && !name.ends_with(".turns")) continue;
    if (view.shape.size() != (matrices ? 3 : 2)) {
      return Invalid("{}: tensor {} must have {} dimensions but has {}", checkpoint->path.string(),
                     checkpoint->NameInFile(name), matrices ? 3 : 2, view.shape.size());
    }
    const bool in_turns = stem.ends_with(".gate_up");
    if (!matrices) {
      Arrange(name, stem + ".bias", view.shape, InOrder, checkpoint);
    } else if (IsQuantized(view.format)) {
      Arrange(name, stem + ".weight", view.shape, in_turns ? InOrder : nullptr, checkpoint);
    } else {
      Arrange(name, stem + ".weight", {view.shape[0], view.shape[2], view.shape[1]},
              in_turns ? TransposedInTurns : TransposedInOrder, checkpoint);
    }
  }
  return {};
}

}  // namespace

const Family kGptOss = {.name = "gpt_oss",
                        .architecture = "GptOssForCausalLM",
                        .gguf = "gpt-oss",
                        .names = kGptOssNames,
                        .fields = kGptOssFields,
                        .describe = DescribeGptOss,
                        .gguf_fields = GptOssFromGguf,
                        .arrange = ArrangeGptOss};

}  // namespace foretoken
