#include "convert/gguf_keys.h"

#include <fmt/core.h>

#include <string>

#include "model/llama/rope.h"

namespace foretoken {
namespace {

void SetShape(const ModelConfig& config, GgufHeader* header) {
  const auto set = [header](const char* name, int value) {
    header->Set(fmt::format("llama.{}", name), static_cast<std::uint32_t>(value));
  };
  header->Set("general.architecture", "llama");
  set("block_count", config.layers);
  set("context_length", config.max_positions);
  set("embedding_length", config.hidden);
  set("feed_forward_length", config.intermediate);
  set("vocab_size", config.vocabulary);
  set("attention.head_count", config.heads);
  set("attention.head_count_kv", config.kv_heads);
  set("attention.key_length", config.head_dim);
  set("attention.value_length", config.head_dim);
  set("rope.dimension_count", config.head_dim);
  header->Set("llama.attention.layer_norm_rms_epsilon", config.norm_epsilon);
  header->Set("llama.rope.freq_base", static_cast<float>(config.rope_theta));
  if (config.rope_scaling.kind == RopeScaling::Kind::kLinear) {
    header->Set("llama.rope.scaling.type", "linear");
    header->Set("llama.rope.scaling.factor", static_cast<float>(config.rope_scaling.factor));
  }
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
  if (!vocabulary.chat_template.empty()) {
    header->Set("tokenizer.chat_template", vocabulary.chat_template);
  }
}

}  // namespace

Status SetModelKeys(const Checkpoint& checkpoint, const ModelConfig& config, GgufHeader* header) {
  if (checkpoint.gguf) {
    for (const auto& [key, value] : checkpoint.gguf->encoded()) {
      if (!key.starts_with("split.")) header->Set(key, value);
    }
    return {};
  }
  FT_ASSIGN_OR_RETURN(const VocabularyToEmbed vocabulary,
                      ReadVocabularyToEmbed(checkpoint.path, config.vocabulary, config.eos));
  std::string name = checkpoint.path.filename().string();
  if (name.empty()) name = checkpoint.path.parent_path().filename().string();
  header->Set("general.name", name);
  SetShape(config, header);
  SetVocabulary(vocabulary, header);
  return {};
}

std::vector<float> RopeFactors(const ModelConfig& config) {
  const RopeScaling::Kind kind = config.rope_scaling.kind;
  if (kind != RopeScaling::Kind::kLlama3 && kind != RopeScaling::Kind::kFactors) return {};
  ModelConfig unscaled = config;
  unscaled.rope_scaling = {};
  const std::vector<double> scaled = RopeFrequencies(config);
  std::vector<float> factors;
  for (const double frequency : RopeFrequencies(unscaled)) {
    factors.push_back(static_cast<float>(frequency / scaled[factors.size()]));
  }
  return factors;
}

}  // namespace foretoken
