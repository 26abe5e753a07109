#include "door/convert/gguf_keys.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "core/model/decoder/rope.h"
#include "core/model/families/family.h"
#include "core/model/families/gguf/gguf_config.h"
#include "core/model/families/read_config.h"
#include "core/weights/gguf/gguf_file.h"
#include "door/convert/same_model.h"

namespace foretoken {
namespace {

// Sets keys of one architecture.
class KeySetter {
 public:
  KeySetter(std::string architecture, GgufHeader* header)
      : architecture_(std::move(architecture)), header_(header) {}

  void Set(std::string_view name, int value) const {
    header_->Set(Key(name), static_cast<std::uint32_t>(value));
  }
  void Set(std::string_view name, double value) const {
    header_->Set(Key(name), static_cast<float>(value));
  }
  void Set(std::string_view name, const char* value) const { header_->Set(Key(name), value); }
  // Where it is not what it is without the key.
  void SetUnless(double usual, std::string_view name, double value) const {
    if (std::abs(value - usual) > 1e-6 * std::abs(usual)) Set(name, value);
  }

 private:
  std::string Key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }

  std::string architecture_;
  GgufHeader* header_;
};

void SetAttention(const ModelConfig& config, const KeySetter& keys) {
  const AttentionSpec& attention = config.first_attention();
  keys.Set("attention.head_count", attention.heads);
  keys.Set("attention.head_count_kv", attention.kv_heads);
  keys.Set("attention.key_length", attention.head_dim);
  keys.Set("attention.value_length", attention.shape().value_dim());
  keys.Set(config.norm.kind == NormKind::kRms ? "attention.layer_norm_rms_epsilon"
                                              : "attention.layer_norm_epsilon",
           double{config.norm.epsilon});
  keys.SetUnless(1 / std::sqrt(attention.head_dim), "attention.scale", attention.scale);
  if (attention.score_cap > 0) keys.Set("attn_logit_softcapping", double{attention.score_cap});
  // Windows of all layers, or of all but each of so many.
  const auto full = std::ranges::find(
      config.layers, 0, [](const LayerSpec& layer) { return layer.attention.window; });
  const int before = full - config.layers.begin();
  if (before == 0) return;
  keys.Set("attention.sliding_window", attention.window);
  if (full != config.layers.end()) keys.Set("attention.sliding_window_pattern", before + 1);
}

void SetExpertKeys(const ModelConfig& config, const KeySetter& keys) {
  const auto has = [](const LayerSpec& layer) { return layer.mlp.has_experts(); };
  const auto dense = std::ranges::find_if_not(config.layers, has);
  const LayerSpec& usual = dense == config.layers.end() ? config.layers.front() : *dense;
  keys.Set("feed_forward_length", usual.mlp.intermediate);
  const auto sparse = std::ranges::find_if(config.layers, has);
  if (sparse == config.layers.end()) return;
  keys.Set("expert_count", sparse->mlp.routing.experts);
  keys.Set("expert_used_count", sparse->mlp.routing.chosen);
  keys.Set("expert_feed_forward_length", sparse->mlp.intermediate);
  if (sparse->mlp.has_shared()) {
    keys.Set("expert_shared_feed_forward_length", sparse->mlp.shared_intermediate);
  }
}

void SetRope(const ModelConfig& config, const KeySetter& keys) {
  const RopeSpec& rope = config.ropes.front();
  const RopeScaling& scaling = rope.scaling;
  keys.Set("rope.dimension_count", rope.dims);
  keys.Set("rope.freq_base", rope.theta);
  if (config.ropes.size() > 1) keys.Set("rope.freq_base_swa", config.ropes[1].theta);
  const int original = scaling.original_positions;
  switch (scaling.kind) {
    case RopeScaling::Kind::kLinear:
      keys.Set("rope.scaling.type", "linear");
      keys.Set("rope.scaling.factor", scaling.factor);
      break;
    case RopeScaling::Kind::kYarn:
      keys.Set("rope.scaling.type", "yarn");
      keys.Set("rope.scaling.factor", scaling.factor);
      keys.Set("rope.scaling.original_context_length", original);
      keys.Set("rope.scaling.yarn_beta_fast", scaling.beta_fast);
      keys.Set("rope.scaling.yarn_beta_slow", scaling.beta_slow);
      keys.SetUnless(0.1 * std::log(std::max(scaling.factor, 1.0)) + 1,
                     "rope.scaling.yarn_attn_factor", scaling.attention_factor);
      break;
    case RopeScaling::Kind::kFactors:
      keys.Set("rope.scaling.original_context_length", original);
      keys.SetUnless(1, "rope.scaling.attn_factor", scaling.attention_factor);
      break;
    case RopeScaling::Kind::kNone:
    case RopeScaling::Kind::kLlama3:
      break;
  }
}

void SetShape(const ModelConfig& config, const Family& family, GgufHeader* header) {
  const KeySetter keys(std::string(family.gguf), header);
  header->Set("general.architecture", family.gguf);
  keys.Set("block_count", config.layer_count());
  keys.Set("context_length", config.max_positions);
  keys.Set("embedding_length", config.hidden);
  keys.Set("vocab_size", config.vocabulary);
  SetExpertKeys(config, keys);
  SetAttention(config, keys);
  SetRope(config, keys);
  keys.SetUnless(1, "embedding_scale", config.embedding_scale);
  keys.SetUnless(1, "residual_scale", config.block.scale);
  if (config.logit_cap > 0) keys.Set("final_logit_softcapping", double{config.logit_cap});
  if (family.gguf_keys != nullptr) family.gguf_keys(config, header);
}

void SetVocabulary(const VocabularyToEmbed& vocabulary, GgufHeader* header) {
  const auto key = [](const char* name) { return fmt::format("tokenizer.ggml.{}", name); };
  const auto set_id = [&](const char* name, const std::optional<Token>& id) {
    if (id) header->Set(key(name), static_cast<std::uint32_t>(*id));
  };
  header->Set(key("model"), vocabulary.model);
  header->Set(key("pre"), vocabulary.pre);
  header->Set(key("tokens"), std::span<const std::string>(vocabulary.tokens));
  const std::vector<std::int32_t> types(vocabulary.types.begin(), vocabulary.types.end());
  header->Set(key("token_type"), std::span<const std::int32_t>(types));
  if (!vocabulary.scores.empty()) {
    header->Set(key("scores"), std::span<const float>(vocabulary.scores));
    header->Set(key("add_space_prefix"), vocabulary.add_space_prefix);
    header->Set(key("remove_extra_whitespaces"), vocabulary.remove_extra_whitespaces);
  }
  if (!vocabulary.merges.empty()) {
    header->Set(key("merges"), std::span<const std::string>(vocabulary.merges));
  }
  set_id("bos_token_id", vocabulary.bos);
  set_id("eos_token_id", vocabulary.eos);
  set_id("eot_token_id", vocabulary.eot);
  set_id("eom_token_id", vocabulary.eom);
  set_id("unknown_token_id", vocabulary.unknown);
  header->Set(key("add_bos_token"), vocabulary.add_bos);
  header->Set(key("add_eos_token"), false);
  std::vector<std::string> named;
  for (const auto& [name, jinja] : vocabulary.chat_templates.by_name) {
    const bool usual = name == ChatTemplates::kUsual;
    const std::string template_key = "tokenizer.chat_template";
    header->Set(usual ? template_key : fmt::format("{}.{}", template_key, name), jinja);
    if (!usual) named.push_back(name);
  }
  if (!named.empty()) header->Set("tokenizer.chat_templates", std::span<const std::string>(named));
}

}  // namespace

Status SetModelKeys(const Checkpoint& checkpoint, const ModelConfig& config, GgufHeader* header) {
  if (checkpoint.gguf) {
    for (const auto& [key, value] : checkpoint.gguf->encoded()) {
      // Layers that guess further tokens are not written.
      if (key.ends_with(".nextn_predict_layers")) continue;
      if (!key.starts_with("split.")) header->Set(key, value);
    }
    std::string architecture;
    FT_RETURN_IF_ERROR(checkpoint.gguf->String("general.architecture", &architecture));
    header->Set(architecture + ".block_count", static_cast<std::uint32_t>(config.layer_count()));
    return {};
  }
  const Family& family = *FamilyNamed(config.family);
  if (family.gguf.empty()) {
    return Invalid("{}: models of the family {} have no form in GGUF files",
                   checkpoint.path.string(), config.family);
  }
  FT_ASSIGN_OR_RETURN(const VocabularyToEmbed vocabulary,
                      ReadVocabularyToEmbed(checkpoint.path, config.vocabulary, config.eos));
  std::string name = checkpoint.path.filename().string();
  if (name.empty()) name = checkpoint.path.parent_path().filename().string();
  header->Set("general.name", name);
  SetShape(config, family, header);
  SetVocabulary(vocabulary, header);
  return {};
}

Result<std::vector<RopeFactors>> ReadRopeFactors(const Checkpoint& checkpoint,
                                                 const ModelConfig& config) {
  const RopeSpec& rope = config.ropes.front();
  const auto floats = [](const std::vector<double>& values) {
    return std::vector<float>(values.begin(), values.end());
  };
  if (rope.scaling.kind == RopeScaling::Kind::kLlama3) {
    std::vector<double> factors = RopeFrequencies({.theta = rope.theta, .dims = rope.dims});
    const std::vector<double> scaled = RopeFrequencies(rope);
    for (std::size_t i = 0; i < factors.size(); ++i) factors[i] /= scaled[i];
    return std::vector<RopeFactors>{{"rope_freqs.weight", floats(factors)}};
  }
  if (rope.scaling.kind != RopeScaling::Kind::kFactors) return std::vector<RopeFactors>();
  // The factors for texts within the first context may be others.
  FT_ASSIGN_OR_RETURN(
      const ModelConfig within,
      ReadModelConfig(checkpoint, static_cast<int>(rope.scaling.original_positions)));
  const std::vector<double>& of_short = within.ropes.front().scaling.factors;
  if (rope.scaling.attention_factor == 1 && rope.scaling.factors == of_short) {
    return std::vector<RopeFactors>{{"rope_freqs.weight", floats(of_short)}};
  }
  return std::vector<RopeFactors>{{"rope_factors_long.weight", floats(rope.scaling.factors)},
                                  {"rope_factors_short.weight", floats(of_short)}};
}

Status CheckDescription(const Checkpoint& checkpoint, const ModelConfig& config,
                        const GgufHeader& header, const TensorMap& tensors) {
  if (checkpoint.gguf) return {};  // It keeps its keys.
  const std::string bytes = header.Bytes();
  FT_ASSIGN_OR_RETURN(const GgufContents contents,
                      ParseGguf(std::as_bytes(std::span(bytes)), checkpoint.path.string()));
  const auto read = [&]() -> Result<ModelConfig> {
    FT_ASSIGN_OR_RETURN(const std::string json, ConfigFromGguf(contents.metadata, tensors, ""));
    return ParseDescription(json, "");
  }();
  const std::string_view difference =
      read.ok() ? DifferenceOf(config, *read) : "what its layers compute";
  if (difference.empty()) return {};
  return Invalid("{}: is a model of the family {}, and a GGUF file of it would not say {} right",
                 checkpoint.path.string(), config.family, difference);
}

}  // namespace foretoken
