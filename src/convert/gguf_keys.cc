#include "convert/gguf_keys.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "model/decoder/rope.h"

namespace foretoken {
namespace {

void SetShape(const ModelConfig& config, GgufHeader* header) {
  const auto set = [header](const char* name, int value) {
    header->Set(fmt::format("llama.{}", name), static_cast<std::uint32_t>(value));
  };
  const LayerSpec& layer = config.layers.front();
  const RopeSpec& rope = config.ropes.front();
  header->Set("general.architecture", "llama");
  set("block_count", config.layer_count());
  set("context_length", config.max_positions);
  set("embedding_length", config.hidden);
  set("feed_forward_length", layer.mlp.intermediate);
  set("vocab_size", config.vocabulary);
  set("attention.head_count", layer.attention.heads);
  set("attention.head_count_kv", layer.attention.kv_heads);
  set("attention.key_length", layer.attention.head_dim);
  set("attention.value_length", layer.attention.head_dim);
  set("rope.dimension_count", rope.dims);
  header->Set("llama.attention.layer_norm_rms_epsilon", config.norm.epsilon);
  header->Set("llama.rope.freq_base", static_cast<float>(rope.theta));
  if (rope.scaling.kind == RopeScaling::Kind::kLinear) {
    header->Set("llama.rope.scaling.type", "linear");
    header->Set("llama.rope.scaling.factor", static_cast<float>(rope.scaling.factor));
  }
}

// Whether the keys above say all that the model is.
bool IsPlainLlama(const ModelConfig& config) {
  const bool family = config.family == "llama" || config.family == "mistral";
  const RopeScaling::Kind kind = config.ropes.front().scaling.kind;
  return family && kind != RopeScaling::Kind::kYarn &&
         config.ropes.front().scaling.attention_factor == 1 &&
         std::ranges::all_of(config.layers, [](const LayerSpec& layer) {
           return layer.attention.window == 0 && layer.mlp.activation == Activation::kSilu;
         });
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
  if (!IsPlainLlama(config)) {
    return InvalidInput(fmt::format(
        "{}: is a folder of the family {}, and GGUF files are written of folders of llama and "
        "mistral without a window only; of a GGUF file of it others can be made",
        checkpoint.path.string(), config.family));
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
  const RopeSpec& rope = config.ropes.front();
  const RopeScaling::Kind kind = rope.scaling.kind;
  if (kind != RopeScaling::Kind::kLlama3 && kind != RopeScaling::Kind::kFactors) return {};
  const std::vector<double> scaled = RopeFrequencies(rope);
  std::vector<float> factors;
  for (const double frequency : RopeFrequencies({.theta = rope.theta, .dims = rope.dims})) {
    factors.push_back(static_cast<float>(frequency / scaled[factors.size()]));
  }
  return factors;
}

}  // namespace foretoken
