#include "model/config/model_config.h"

#include <fmt/core.h>

#include <utility>

#include "base/printable.h"
#include "json/json_object.h"
#include "weights/checkpoint.h"

namespace foretoken {
namespace {

using Json = JsonObject::Json;

// Above any known model, and small enough that no product of sizes overflows 64 bits.
constexpr int kMaxHidden = 1 << 16;
constexpr int kMaxIntermediate = 1 << 20;
constexpr int kMaxLayers = 1 << 10;
constexpr int kMaxHeads = 1 << 10;
constexpr int kMaxHeadDim = 1 << 10;
constexpr int kMaxVocabulary = 1 << 22;
constexpr int kMaxPositions = 1 << 20;

// The fields of a configuration.
class Fields : public JsonObject {
 public:
  Fields(const Json* json, std::string where, Status* status)
      : JsonObject(json, std::move(where), status) {
    integer_ = "an integer";
  }
  using JsonObject::Path;

  void Refuse(const std::string& what) {
    if (ok()) *status_ = InvalidInput(fmt::format("{}: {}", place_, what));
  }

  // One token or a list of tokens; negative ones mean none.
  std::vector<Token> Tokens(const char* name, int vocabulary) {
    const Json* json = Find(name);
    if (json == nullptr) return {};
    std::vector<Token> tokens;
    const Json list = json->is_array() ? *json : Json::array({*json});
    for (const Json& item : list) {
      const bool huge = item.is_number_unsigned() && item.get<std::uint64_t>() > INT32_MAX;
      if (!item.is_number_integer() || huge || item.get<std::int64_t>() >= vocabulary) {
        Refuse(fmt::format("{} holds {} but must hold tokens below the vocabulary of {}", name,
                           Printable(item.dump()), vocabulary));
        return {};
      }
      if (item.get<std::int64_t>() >= 0) tokens.push_back(item.get<Token>());
    }
    return tokens;
  }

 private:
  void RefuseMissing(std::string_view name) override { Refuse(fmt::format("lacks {}", name)); }
};

Result<Json> ParseObject(std::string_view text, std::string_view where) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return InvalidInput(fmt::format("{}: is not a JSON object", where));
  return json;
}

void CheckFamily(Fields& fields, ModelConfig& config) {
  if (const Json* list = fields.Find("architectures");
      list != nullptr && list->is_array() && !list->empty() && (*list)[0].is_string()) {
    config.architecture = (*list)[0].get<std::string>();
  }
  std::string type;
  fields.String("model_type", &type);
  if (config.architecture.empty()) {
    config.architecture = type == "mistral" ? "MistralForCausalLM"
                          : type == "llama" ? "LlamaForCausalLM"
                                            : "unknown";
  }
  const bool is_llama = config.architecture == "LlamaForCausalLM";
  const bool is_mistral = config.architecture == "MistralForCausalLM";
  if (!(is_llama || is_mistral) || !(type.empty() || type == "llama" || type == "mistral")) {
    fields.Refuse(fmt::format(
        "describes {} (model_type '{}'), but only LlamaForCausalLM and MistralForCausalLM can run",
        Printable(config.architecture), Printable(type)));
  }
}

// What would change the arithmetic is refused by name rather than computed wrongly.
void RefuseUnsupported(Fields& fields, const ModelConfig& config) {
  std::string activation = "silu";
  fields.String("hidden_act", &activation);
  if (activation != "silu") {
    fields.Refuse(
        fmt::format("hidden_act is {}, but only silu is supported", Printable(activation)));
  }
  for (const char* bias : {"attention_bias", "mlp_bias"}) {
    bool biased = false;
    if (fields.Bool(bias, &biased) && biased) {
      fields.Refuse(fmt::format("{} is true, but projections with a bias are not supported", bias));
    }
  }
  if (fields.Find("quantization_config") != nullptr) {
    fields.Refuse("has a quantization_config, but only F32, F16 and BF16 weights are supported");
  }
  if (const Json* window = fields.Find("sliding_window");
      window != nullptr &&
      (!window->is_number_integer() || window->get<std::int64_t>() < config.max_positions)) {
    fields.Refuse(fmt::format("sliding_window is {}, but attention over a window is not supported",
                              Printable(window->dump())));
  }
}

void ParseSizes(Fields& fields, ModelConfig& config) {
  config.hidden = fields.Integer("hidden_size", 1, kMaxHidden);
  config.intermediate = fields.Integer("intermediate_size", 1, kMaxIntermediate);
  config.layers = fields.Integer("num_hidden_layers", 1, kMaxLayers);
  config.heads = fields.Integer("num_attention_heads", 1, kMaxHeads);
  config.kv_heads = config.heads;
  fields.Int("num_key_value_heads", 1, kMaxHeads, &config.kv_heads);
  config.vocabulary = fields.Integer("vocab_size", 1, kMaxVocabulary);
  config.max_positions = 2048;
  fields.Int("max_position_embeddings", 1, kMaxPositions, &config.max_positions);
  if (fields.Find("head_dim") == nullptr && config.hidden % config.heads != 0) {
    fields.Refuse(fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                              config.hidden, config.heads));
  }
  config.head_dim = config.hidden / config.heads;
  fields.Int("head_dim", 1, kMaxHeadDim, &config.head_dim);
  if (config.head_dim % 2 != 0 || config.head_dim < 2 || config.head_dim > kMaxHeadDim) {
    fields.Refuse(fmt::format("head_dim is {} but must be even and from 2 to {}", config.head_dim,
                              kMaxHeadDim));
  }
  if (config.heads % config.kv_heads != 0) {
    fields.Refuse(fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}",
                              config.heads, config.kv_heads));
  }
}

void ParseFactors(Fields& rope, ModelConfig& config) {
  const Json* list = rope.Find("factors");
  const auto wanted = static_cast<std::size_t>(config.head_dim / 2);
  bool good = list != nullptr && list->is_array() && list->size() == wanted;
  for (std::size_t i = 0; good && i < wanted; ++i) {
    const Json& item = (*list)[i];
    good = item.is_number() && item.get<double>() > 0 && item.get<double>() < 1e9;
    if (good) config.rope_scaling.factors.push_back(item.get<double>());
  }
  if (!good) rope.Refuse(fmt::format("factors must be {} positive numbers", wanted));
}

// `rope` is rope_scaling or the newer rope_parameters, which may hold rope_theta too.
void ParseRope(Fields& rope, ModelConfig& config) {
  rope.Number("rope_theta", 1.0, 1e12, &config.rope_theta);
  std::string type = "default";
  rope.String("type", &type);
  rope.String("rope_type", &type);
  RopeScaling& scaling = config.rope_scaling;
  if (type == "default") return;
  if (type == "linear") {
    scaling.kind = RopeScaling::Kind::kLinear;
  } else if (type == "llama3") {
    scaling.kind = RopeScaling::Kind::kLlama3;
  } else if (type == "factors") {
    scaling.kind = RopeScaling::Kind::kFactors;
    return ParseFactors(rope, config);
  } else {
    rope.Refuse(fmt::format("is of type {}, but only default, linear and llama3 are supported",
                            Printable(type)));
    return;
  }
  scaling.factor = rope.Number("factor", 1.0, 1e6);
  if (scaling.kind != RopeScaling::Kind::kLlama3) return;
  scaling.low_frequency_factor = rope.Number("low_freq_factor", 1e-6, 1e6);
  scaling.high_frequency_factor = rope.Number("high_freq_factor", 1e-6, 1e6);
  scaling.original_positions = rope.Integer("original_max_position_embeddings", 1, kMaxPositions);
  if (!(scaling.low_frequency_factor < scaling.high_frequency_factor)) {
    rope.Refuse("low_freq_factor must be below high_freq_factor");
  }
}

void ParseRopeFields(Fields& fields, Status* status, ModelConfig& config) {
  fields.Number("rope_theta", 1.0, 1e12, &config.rope_theta);
  double rotary_factor = 1;
  fields.Number("partial_rotary_factor", 0.0, 1.0, &rotary_factor);
  if (rotary_factor != 1) fields.Refuse("partial_rotary_factor is not 1, which is not supported");
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const Json* json = fields.Find(name);
    if (json == nullptr) continue;
    if (!json->is_object()) return fields.Refuse(fmt::format("{} must be null or an object", name));
    Fields rope(json, fields.Path(name), status);
    ParseRope(rope, config);
  }
}

}  // namespace

std::int64_t ModelConfig::parameters() const {
  const std::int64_t width = hidden;
  const std::int64_t attention =
      width * head_dim * (heads + 2 * std::int64_t{kv_heads}) + width * head_dim * heads;
  const std::int64_t mlp = 3 * width * intermediate;
  const std::int64_t table = width * vocabulary;
  return layers * (attention + mlp + 2 * width) + width + table * (tied_embeddings ? 1 : 2);
}

Result<ModelConfig> ParseModelConfig(std::string_view text, std::string_view where) {
  FT_ASSIGN_OR_RETURN(const Json json, ParseObject(text, where));
  Status status;
  Fields fields(&json, std::string(where), &status);
  ModelConfig config;
  CheckFamily(fields, config);
  ParseSizes(fields, config);
  RefuseUnsupported(fields, config);
  double epsilon = 1e-6;
  fields.Number("rms_norm_eps", 1e-30, 1.0, &epsilon);
  config.norm_epsilon = static_cast<float>(epsilon);
  fields.Bool("tie_word_embeddings", &config.tied_embeddings);
  config.eos = fields.Tokens("eos_token_id", config.vocabulary);
  if (const auto bos = fields.Tokens("bos_token_id", config.vocabulary); !bos.empty()) {
    config.bos = bos[0];
  }
  ParseRopeFields(fields, &status, config);
  FT_RETURN_IF_ERROR(status);
  return config;
}

Status ApplyGenerationConfig(std::string_view text, std::string_view where, ModelConfig* config) {
  FT_ASSIGN_OR_RETURN(const Json json, ParseObject(text, where));
  Status status;
  Fields fields(&json, std::string(where), &status);
  auto eos = fields.Tokens("eos_token_id", config->vocabulary);
  const auto bos = fields.Tokens("bos_token_id", config->vocabulary);
  FT_RETURN_IF_ERROR(status);
  if (!eos.empty()) config->eos = std::move(eos);
  if (!bos.empty()) config->bos = bos[0];
  return {};
}

Result<ModelConfig> ReadModelConfig(const Checkpoint& checkpoint) {
  const auto& [config_json, config_place] = checkpoint.config;
  FT_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(config_json, config_place));
  const auto& [generation_json, generation_place] = checkpoint.generation_config;
  if (!generation_json.empty()) {
    FT_RETURN_IF_ERROR(ApplyGenerationConfig(generation_json, generation_place, &config));
  }
  return config;
}

}  // namespace foretoken
