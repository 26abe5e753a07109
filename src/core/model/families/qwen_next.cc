#include <span>
#include <string>
#include <vector>

#include "base/text/printable.h"
#include "core/model/families/family.h"
#include "core/model/families/gguf/own_keys.h"
#include "core/model/families/gguf/recurrent_order.h"

namespace foretoken {
namespace {

constexpr TensorName kQwenNextNames[] = {
    {"delta.qkvz", "linear_attn.in_proj_qkvz", "ssm_in"},
    {"delta.ba", "linear_attn.in_proj_ba", "ssm_ba"},
    {"mlp_norm", "post_attention_layernorm", "post_attention_norm"},
    {"delta.qkv", "linear_attn.in_proj_qkv", "attn_qkv"},
    {"delta.z", "linear_attn.in_proj_z", "attn_gate"},
    {"delta.b", "linear_attn.in_proj_b", "ssm_beta"},
    {"delta.a", "linear_attn.in_proj_a", "ssm_alpha"},
    {"delta.taps", "linear_attn.conv1d", "ssm_conv1d"},
    {"delta.log_rates", "linear_attn.A_log", ""},
    {"delta.minus_rates", "", "ssm_a"},
    {"delta.rate_bias", "linear_attn.dt_bias", "ssm_dt.bias"},
    {"delta.rate_bias", "", "ssm_dt"},  // In Ollama's files.
    {"delta.norm", "linear_attn.norm", "ssm_norm"},
    {"delta.o", "linear_attn.out_proj", "ssm_out"},
};

// Qwen3.5 has no inputs together.
constexpr auto k35Names = std::span(kQwenNextNames).subspan(2);

// What all of their classes have, then what each has besides; where all layers have experts there
// is no width of an MLP.
constexpr std::string_view kQwenNextFields = R"({
    "attention_bias": false, "full_attention_interval": 4, "head_dim": 256, "layer_types": null,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
    "linear_num_value_heads": 32, "linear_value_head_dim": 128,
    "max_position_embeddings": 32768, "partial_rotary_factor": 0.25})";
constexpr std::string_view kNextFields = R"({
    "decoder_sparse_step": 1, "intermediate_size": 5632, "mlp_only_layers": null,
    "moe_intermediate_size": 512, "norm_topk_prob": true, "num_experts": 512,
    "num_experts_per_tok": 10, "num_key_value_heads": 2,
    "shared_expert_intermediate_size": 512})";
constexpr std::string_view k35Fields = R"({"num_key_value_heads": 4})";
constexpr std::string_view k35MoeFields = R"({
    "intermediate_size": 1, "moe_intermediate_size": 512, "num_experts": 256,
    "num_experts_per_tok": 8, "num_key_value_heads": 2,
    "shared_expert_intermediate_size": 512})";

constexpr int kMostTaps = 64;

DeltaShape ReadDelta(ConfigFields& fields, bool keys_in_turns) {
  DeltaShape delta;
  delta.key_heads = fields.IntOr("linear_num_key_heads", 1, kMaxHeads, 16);
  delta.value_heads = fields.IntOr("linear_num_value_heads", 1, kMaxHeads, 32);
  delta.key_dim = fields.IntOr("linear_key_head_dim", 1, kMaxHeadDim, 128);
  delta.value_dim = fields.IntOr("linear_value_head_dim", 1, kMaxHeadDim, 128);
  // GGUF files have that of all heads together.
  const int together =
      fields.IntOr("linear_value_width", 1, kMaxHidden, delta.value_dim * delta.value_heads);
  delta.value_dim = together / delta.value_heads;
  delta.keys_in_turns = keys_in_turns;
  delta.taps = fields.IntOr("linear_conv_kernel_dim", 1, kMostTaps, 4);
  if (fields.ok() && delta.value_heads % delta.key_heads != 0) {
    fields.Refuse("linear_num_value_heads {} is not a multiple of linear_num_key_heads {}",
                  delta.value_heads, delta.key_heads);
  }
  return delta;
}

// All layers but each of so many are recurrent; those that are not have gates. `keys_in_turns` is
// DeltaShape's.
void DescribeRecurrent(ConfigFields& fields, bool keys_in_turns, ModelConfig* config) {
  if (config->layers.front().attention.qkv_bias) {
    fields.Refuse("has attention_bias, but gated attention with biases is not supported");
  }
  if (config->layers.front().mlp.activation != Activation::kSilu) {
    fields.Refuse("hidden_act is not silu, which is not supported beside recurrent layers");
  }
  const DeltaShape delta = ReadDelta(fields, keys_in_turns);
  const int every = fields.IntOr("full_attention_interval", 1, kMaxLayers, 4);
  const std::vector<std::string> types = fields.Strings("layer_types", config->layers.size());
  for (std::size_t i = 0; i < config->layers.size() && fields.ok(); ++i) {
    LayerSpec& layer = config->layers[i];
    if (!types.empty() && types[i] != "full_attention" && types[i] != "linear_attention") {
      fields.Refuse(
          "layer_types has {}, but only full_attention and linear_attention are supported",
          Printable(types[i]));
    }
    if (types.empty() ? (i + 1) % static_cast<std::size_t>(every) != 0
                      : types[i] == "linear_attention") {
      layer.attention = {};
      layer.delta = delta;
    } else {
      layer.attention.qk_norm = AttentionSpec::QkNorm::kEachHead;
      layer.attention.output_gate = true;
    }
  }
}

void AddExperts(ConfigFields& fields, ModelConfig* config) {
  if (fields.ok()) SetQwenExperts(fields, /*normalised=*/true, config);
  const int shared = fields.Integer("shared_expert_intermediate_size", 1, kMaxIntermediate);
  if (fields.ok()) SetShared(shared, true, config);
}

void DescribeQwen3Next(ConfigFields& fields, ModelConfig* config) {
  DescribeRecurrent(fields, /*keys_in_turns=*/false, config);
  AddExperts(fields, config);
}

// Folders are read in the form of files, in which value heads take the key heads in turns.
void DescribeQwen35(ConfigFields& fields, ModelConfig* config) {
  DescribeRecurrent(fields, /*keys_in_turns=*/true, config);
}

void DescribeQwen35Moe(ConfigFields& fields, ModelConfig* config) {
  DescribeQwen35(fields, config);
  AddExperts(fields, config);
}

// Taps are a matrix, whatever dimensions folders give them.
Status ArrangeTaps(Checkpoint* checkpoint) {
  for (auto& [name, tensor] : checkpoint->tensors) {
    if (!name.ends_with(".taps.weight") || tensor.shape.size() != 3) continue;
    if (tensor.shape[1] == 1) tensor.shape.erase(tensor.shape.begin() + 1);
  }
  return {};
}

}  // namespace

const Family kQwen3Next = {.name = "qwen3_next",
                           .architecture = "Qwen3NextForCausalLM",
                           .gguf = "qwen3next",
                           .names = kQwenNextNames,
                           .folder_gains_less_one = true,
                           .fields = kNextFields,
                           .relatives_fields = kQwenNextFields,
                           .describe = DescribeQwen3Next,
                           .gguf_fields = RecurrentFromGguf,
                           .gguf_keys = RecurrentToGguf,
                           .arrange_for_gguf = ArrangeQwen3NextForGguf,
                           .arrange = ArrangeTaps};

const Family kQwen35 = {.name = "qwen3_5_text",
                        .architecture = "Qwen3_5ForCausalLM",
                        .gguf = "qwen35",
                        .names = k35Names,
                        .folder_gains_less_one = true,
                        .fields = k35Fields,
                        .relatives_fields = kQwenNextFields,
                        .describe = DescribeQwen35,
                        .gguf_fields = RecurrentFromGguf,
                        .gguf_keys = RecurrentToGguf,
                        .arrange_for_gguf = ArrangeQwen35ForGguf,
                        .reads_as_gguf = true,
                        .arrange = ArrangeTaps};

const Family kQwen35Moe = {.name = "qwen3_5_moe_text",
                           .architecture = "Qwen3_5MoeForCausalLM",
                           .gguf = "qwen35moe",
                           .names = k35Names,
                           .folder_gains_less_one = true,
                           .fields = k35MoeFields,
                           .relatives_fields = kQwenNextFields,
                           .describe = DescribeQwen35Moe,
                           .gguf_fields = RecurrentFromGguf,
                           .gguf_keys = RecurrentToGguf,
                           .arrange_for_gguf = ArrangeQwen35ForGguf,
                           .reads_as_gguf = true,
                           .arrange = ArrangeTaps};

}  // namespace foretoken
