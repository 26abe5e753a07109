#include "core/model/families/family.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/numbers/integers.h"
#include "base/text/parse_number.h"
#include "base/text/printable.h"
#include "core/model/config/rope_config.h"
#include "core/model/families/model_part.h"
#include "foretoken/speculation.h"

namespace foretoken {
namespace {

constexpr std::array kAllFamilies = {
    &kLlama,         &kMistral,    &kMinistral3, &kQwen2,      &kMimo,
    &kQwen3,         &kGemma2,     &kGemma3,     &kGemma4,     &kPhi3,
    &kSmolLm3,       &kOlmo2,      &kGranite,    &kGlm,        &kGlm4,
    &kGlm4Moe,       &kCohere,     &kCohere2,    &kStableLm,   &kMixtral,
    &kQwen2Moe,      &kQwen3Moe,   &kOlmoe,      &kGraniteMoe, &kGraniteMoeShared,
    &kGraniteHybrid, &kDeepseekV2, &kDeepseekV3, &kGptOss,     &kQwen3Next,
    &kQwen35,        &kQwen35Moe};

constexpr TensorName kUsualOfModel[] = {
    {"embedding", "model.embed_tokens", "token_embd"},
    {"output_norm", "model.norm", "output_norm"},
    {"head", "lm_head", "output"},
};
constexpr TensorName kUsualOfLayers[] = {
    {"attention_norm", "input_layernorm", "attn_norm"},
    {"q", "self_attn.q_proj", "attn_q"},
    {"k", "self_attn.k_proj", "attn_k"},
    {"v", "self_attn.v_proj", "attn_v"},
    {"o", "self_attn.o_proj", "attn_output"},
    {"q_norm", "self_attn.q_norm", "attn_q_norm"},
    {"k_norm", "self_attn.k_norm", "attn_k_norm"},
    {"mlp_norm", "post_attention_layernorm", "ffn_norm"},
    {"gate", "mlp.gate_proj", "ffn_gate"},
    {"up", "mlp.up_proj", "ffn_up"},
    {"down", "mlp.down_proj", "ffn_down"},
    {"router", "mlp.gate", "ffn_gate_inp"},
    {"choice_bias", "mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"experts.gate", "", "ffn_gate_exps"},
    {"experts.up", "", "ffn_up_exps"},
    {"experts.down", "", "ffn_down_exps"},
    {"experts.gate_up.weight", "mlp.experts.gate_up_proj", ""},
    {"experts.down.weight", "mlp.experts.down_proj", ""},
    {"experts.*.gate", "mlp.experts.*.gate_proj", "ffn_gate.*"},
    {"experts.*.up", "mlp.experts.*.up_proj", "ffn_up.*"},
    {"experts.*.down", "mlp.experts.*.down_proj", "ffn_down.*"},
    {"shared.gate", "mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"shared.up", "mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"shared.down", "mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"shared_gate", "mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
};

// Whether it is a number, written in the one way that there is.
bool IsNumber(std::string_view text) {
  int number = -1;
  return ParseNumber(text, &number) && number >= 0 && text == std::to_string(number);
}

// "blk.3.attn_q.weight" as "3." and "attn_q.weight", where `prefix` is "blk."; without a layer the
// number is empty.
struct NameParts {
  std::string_view number;
  std::string_view rest;
};
std::optional<NameParts> Split(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return NameParts{{}, name};
  name.remove_prefix(prefix.size());
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || !IsNumber(name.substr(0, dot))) return std::nullopt;
  return NameParts{name.substr(0, dot + 1), name.substr(dot + 1)};
}

// `name` with what matches `from` replaced by `to`, both of which may have the number of an expert.
std::optional<std::string> Replaced(std::string_view name, std::string_view from,
                                    std::string_view to) {
  if (from.empty() || to.empty()) return std::nullopt;
  const std::size_t star = from.find('*');
  if (star == std::string_view::npos) {
    return name == from ? std::optional(std::string(to)) : std::nullopt;
  }
  const std::string_view behind = from.substr(star + 1);
  if (name.size() < from.size() || !name.starts_with(from.substr(0, star)) ||
      !name.ends_with(behind)) {
    return std::nullopt;
  }
  const std::string_view expert = name.substr(star, name.size() - star - behind.size());
  if (!IsNumber(expert)) return std::nullopt;
  const std::size_t place = to.find('*');
  return fmt::format("{}{}{}", to.substr(0, place), expert, to.substr(place + 1));
}

std::string_view PrefixOfLayers(std::string_view TensorName::*form) {
  if (form == &TensorName::ours) return "layers.";
  return form == &TensorName::folder ? "model.layers." : "blk.";
}

// A name in one form in the other; empty where there is none.
std::string TranslateName(const Family& family, std::string_view name,
                          std::string_view TensorName::*from, std::string_view TensorName::*to) {
  const auto parts = Split(name, PrefixOfLayers(from));
  if (!parts) return {};
  std::string_view ending;
  for (const std::string_view usual : {".weight", ".bias"}) {
    if (parts->rest.ends_with(usual)) ending = usual;
  }
  const std::string_view stem = parts->rest.substr(0, parts->rest.size() - ending.size());
  const bool layer = !parts->number.empty();
  const auto usual = layer ? std::span<const TensorName>(kUsualOfLayers)
                           : std::span<const TensorName>(kUsualOfModel);
  for (const std::span<const TensorName> names : {family.names, usual}) {
    for (const TensorName& row : names) {
      const std::string_view prefix = layer ? PrefixOfLayers(to) : "";
      if (const auto whole = Replaced(parts->rest, row.*from, row.*to)) {
        return fmt::format("{}{}{}", prefix, parts->number, *whole);
      }
      const auto found = Replaced(stem, row.*from, row.*to);
      if (!found || ending.empty()) continue;
      return fmt::format("{}{}{}{}", prefix, parts->number, *found, ending);
    }
  }
  return {};
}

Activation ActivationOf(ConfigFields& fields) {
  const char* field = fields.Has("hidden_activation") ? "hidden_activation" : "hidden_act";
  std::string name = "silu";
  fields.String(field, &name);
  if (name == "silu") return Activation::kSilu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast") {
    return Activation::kGeluTanh;
  }
  fields.Refuse("{} is {}, but only silu and gelu_pytorch_tanh are supported", field,
                Printable(name));
  return Activation::kSilu;
}

void ReadAttentionHeads(ConfigFields& fields, int hidden, AttentionSpec* attention) {
  attention->heads = fields.Integer("num_attention_heads", 1, kMaxHeads);
  attention->kv_heads = fields.IntOr("num_key_value_heads", 1, kMaxHeads, attention->heads);
  if (!fields.ok()) return;
  if (!fields.Has("head_dim") && hidden % attention->heads != 0) {
    fields.Refuse("hidden_size {} is not a multiple of num_attention_heads {}", hidden,
                  attention->heads);
  }
  attention->head_dim = fields.IntOr("head_dim", 1, kMaxHeadDim, hidden / attention->heads);
  if (attention->head_dim % 2 != 0 || attention->head_dim < 2 ||
      attention->head_dim > kMaxHeadDim) {
    fields.Refuse("head_dim is {} but must be even and from 2 to {}", attention->head_dim,
                  kMaxHeadDim);
  }
  if (attention->heads % attention->kv_heads != 0) {
    fields.Refuse("num_attention_heads {} is not a multiple of num_key_value_heads {}",
                  attention->heads, attention->kv_heads);
  }
  attention->scale = 1 / std::sqrt(static_cast<double>(attention->head_dim));
}

}  // namespace

std::span<const Family* const> Families() { return kAllFamilies; }

const Family* FamilyNamed(std::string_view name) {
  for (const Family* family : kAllFamilies) {
    if (family->name == name) return family;
  }
  return nullptr;
}

void DescribeUsual(ConfigFields& fields, int context, ModelConfig* config) {
  config->hidden = fields.Integer("hidden_size", 1, kMaxHidden);
  LayerSpec layer;
  layer.mlp.intermediate = fields.Integer("intermediate_size", 1, kMaxIntermediate);
  const int layers = fields.Integer("num_hidden_layers", 1, kMaxLayers);
  ReadAttentionHeads(fields, config->hidden, &layer.attention);
  config->vocabulary = fields.Integer("vocab_size", 1, kMaxVocabulary);
  const int made_for = fields.IntOr("max_position_embeddings", 1, kMaxPositions, 2048);
  config->max_positions = context == 0 ? made_for : std::min(context, made_for);
  layer.mlp.activation = ActivationOf(fields);
  layer.attention.qkv_bias = fields.BoolOr("attention_bias", false);
  layer.attention.output_bias = fields.BoolOr("attention_output_bias", layer.attention.qkv_bias);
  layer.mlp.bias = fields.BoolOr("mlp_bias", false);
  config->norm.epsilon =
      static_cast<float>(fields.NumberOr("rms_norm_eps", 1e-30, 1.0, config->norm.epsilon));
  config->tied_embeddings = fields.BoolOr("tie_word_embeddings", config->tied_embeddings);
  config->eos = fields.Tokens("eos_token_id", config->vocabulary);
  if (const auto bos = fields.Tokens("bos_token_id", config->vocabulary); !bos.empty()) {
    config->bos = bos[0];
  }
  // PARD's drafts: a chain of any length is said in one pass.
  if (fields.Has("pard_token")) {
    config->parallel = {.positions = kMaxProposal,
                        .mask_token = fields.Integer("pard_token", 0, config->vocabulary - 1)};
  }
  if (config->family != kGemma4.name && !fields.Within("per_layer_config").empty()) {
    fields.Refuse("per_layer_config gives layers sizes of their own, which only Gemma 4 may have");
  }
  if (fields.Find("quantization_config") != nullptr) {
    std::string method;
    fields.Within("quantization_config").String("quant_method", &method);
    if (method != "mxfp4") {
      fields.Refuse(
          "has a quantization_config, but only F32, F16, BF16 and MXFP4 weights are supported");
    }
  }
  if (!fields.ok()) return;
  config->ropes = {ReadRope(fields, layer.attention.head_dim, {made_for, config->max_positions})};
  config->layers.assign(layers, layer);
}

std::vector<bool> SlidingLayers(ConfigFields& fields, int layers,
                                const std::function<bool(int layer)>& otherwise) {
  std::vector<bool> sliding(layers, false);
  const std::vector<std::string> types = fields.Strings("layer_types", sliding.size());
  for (std::size_t i = 0; i < sliding.size() && fields.ok(); ++i) {
    sliding[i] = types.empty() ? otherwise(Int(i)) : types[i] == "sliding_attention";
    if (types.empty() || sliding[i] || types[i] == "full_attention") continue;
    fields.Refuse("layer_types has {}, but only full_attention and sliding_attention are supported",
                  Printable(types[i]));
  }
  return sliding;
}

void SetWindows(const std::vector<bool>& sliding, int window, ModelConfig* config) {
  for (std::size_t i = 0; i < sliding.size(); ++i) {
    config->layers[i].attention.window = sliding[i] && window < config->max_positions ? window : 0;
  }
}

void SetExperts(ConfigFields& fields, Routing routing, int intermediate,
                const std::function<bool(int layer)>& sparse, ModelConfig* config) {
  const char* name = "num_local_experts";
  for (const char* other : {"num_experts", "n_routed_experts"}) {
    if (fields.Has(other)) name = other;
  }
  routing.experts = fields.Integer(name, 1, kMaxExperts);
  const char* chosen = fields.Has("top_k_experts") ? "top_k_experts" : "num_experts_per_tok";
  routing.chosen = fields.Integer(chosen, 1, kMaxExperts);
  if (!fields.ok()) return;
  if (routing.experts % routing.groups != 0 || routing.chosen_groups > routing.groups) {
    return fields.Refuse(
        "{} {} are not in n_group {} groups of one size, of which a row chooses topk_group {}",
        name, routing.experts, routing.groups, routing.chosen_groups);
  }
  const int most = routing.experts / routing.groups * routing.chosen_groups;
  if (routing.chosen > most) {
    return fields.Refuse(
        "{} {} is more than {}", chosen, routing.chosen,
        most == routing.experts
            ? fmt::format("{} {}", name, most)
            : fmt::format(
                  "the {} that topk_group {} of n_group {} groups of n_routed_experts {} have",
                  most, routing.chosen_groups, routing.groups, routing.experts));
  }
  for (std::size_t i = 0; i < config->layers.size(); ++i) {
    if (!sparse(Int(i))) continue;
    config->layers[i].mlp.routing = routing;
    config->layers[i].mlp.intermediate = intermediate;
  }
}

void SetShared(int intermediate, bool gate, ModelConfig* config) {
  for (LayerSpec& layer : config->layers) {
    if (!layer.mlp.has_experts()) continue;
    layer.mlp.shared_intermediate = intermediate;
    layer.mlp.shared_gate = gate && intermediate > 0;
  }
}

std::string OurName(const Family& family, bool gguf, std::string_view name_in_file) {
  if (gguf) return TranslateName(family, name_in_file, &TensorName::gguf, &TensorName::ours);
  return TranslateName(family, WithoutTextPrefix(name_in_file), &TensorName::folder,
                       &TensorName::ours);
}

std::string NameInFile(const Family& family, bool gguf, std::string_view our_name) {
  return TranslateName(family, our_name, &TensorName::ours,
                       gguf ? &TensorName::gguf : &TensorName::folder);
}

}  // namespace foretoken
