#include "model/config/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "weights/model_folder.h"
#include "weights/safetensors.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Above any known model, and small enough that no product of sizes overflows 64 bits.
constexpr std::int64_t kMaxHidden = 1 << 16;
constexpr std::int64_t kMaxIntermediate = 1 << 20;
constexpr std::int64_t kMaxLayers = 1 << 10;
constexpr std::int64_t kMaxHeads = 1 << 10;
constexpr std::int64_t kMaxHeadDim = 1 << 10;
constexpr std::int64_t kMaxVocabulary = 1 << 22;
constexpr std::int64_t kMaxPositions = 1 << 20;

// A JSON object with checked access. A null counts as absent, as in the files of the field. The
// first thing that is wrong is kept and everything after it is ignored, so that a parser reads as
// a list of fields.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const Json* Find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  void Refuse(const std::string& what) {
    if (status_.ok()) status_ = InvalidInput(fmt::format("{}: {}", where_, what));
  }

  int Integer(const char* name, std::int64_t low, std::int64_t high,
              std::optional<std::int64_t> absent = std::nullopt) {
    const Json* json = Find(name);
    if (json == nullptr) {
      if (!absent) Refuse(fmt::format("lacks {}", name));
      return static_cast<int>(absent.value_or(low));
    }
    const auto value = AsInteger(*json);
    if (value && *value >= low && *value <= high) return static_cast<int>(*value);
    Refuse(fmt::format("{} is {} but must be an integer from {} to {}", name,
                       Printable(json->dump()), low, high));
    return static_cast<int>(low);
  }

  double Number(const char* name, double low, double high, std::optional<double> absent) {
    const Json* json = Find(name);
    if (json == nullptr) {
      if (!absent) Refuse(fmt::format("lacks {}", name));
      return absent.value_or(low);
    }
    const double value = json->is_number() ? json->get<double>() : NAN;
    if (value >= low && value <= high) return value;
    Refuse(fmt::format("{} is {} but must be a number from {} to {}", name, Printable(json->dump()),
                       low, high));
    return low;
  }

  bool Flag(const char* name) {
    const Json* json = Find(name);
    if (json == nullptr) return false;
    if (!json->is_boolean()) {
      Refuse(fmt::format("{} is {} but must be true or false", name, Printable(json->dump())));
      return false;
    }
    return json->get<bool>();
  }

  std::string Text(const char* name, const char* absent) {
    const Json* json = Find(name);
    if (json == nullptr) return absent;
    if (!json->is_string()) {
      Refuse(fmt::format("{} is {} but must be a string", name, Printable(json->dump())));
      return absent;
    }
    return json->get<std::string>();
  }

  // One token or a list of tokens; negative ones mean none.
  std::vector<Token> Tokens(const char* name, int vocabulary) {
    const Json* json = Find(name);
    if (json == nullptr) return {};
    std::vector<Token> tokens;
    const Json list = json->is_array() ? *json : Json::array({*json});
    for (const Json& item : list) {
      const auto value = AsInteger(item);
      if (!value || *value >= vocabulary) {
        Refuse(fmt::format("{} holds {} but must hold tokens below the vocabulary of {}", name,
                           Printable(item.dump()), vocabulary));
        return {};
      }
      if (*value >= 0) tokens.push_back(static_cast<Token>(*value));
    }
    return tokens;
  }

  const std::string& where() const { return where_; }
  Status status() const { return status_; }

 private:
  static std::optional<std::int64_t> AsInteger(const Json& json) {
    if (!json.is_number_integer()) return std::nullopt;
    if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
    return json.get<std::int64_t>();
  }

  const Json& object_;
  std::string where_;
  Status status_;
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
  const std::string type = fields.Text("model_type", "");
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
  const std::string activation = fields.Text("hidden_act", "silu");
  if (activation != "silu") {
    fields.Refuse(
        fmt::format("hidden_act is {}, but only silu is supported", Printable(activation)));
  }
  for (const char* bias : {"attention_bias", "mlp_bias"}) {
    if (fields.Flag(bias)) {
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
  config.kv_heads = fields.Integer("num_key_value_heads", 1, kMaxHeads, config.heads);
  config.vocabulary = fields.Integer("vocab_size", 1, kMaxVocabulary);
  config.max_positions = fields.Integer("max_position_embeddings", 1, kMaxPositions, 2048);
  if (fields.Find("head_dim") == nullptr && config.hidden % config.heads != 0) {
    fields.Refuse(fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                              config.hidden, config.heads));
  }
  config.head_dim = fields.Integer("head_dim", 1, kMaxHeadDim, config.hidden / config.heads);
  if (config.head_dim % 2 != 0 || config.head_dim < 2 || config.head_dim > kMaxHeadDim) {
    fields.Refuse(fmt::format("head_dim is {} but must be even and from 2 to {}", config.head_dim,
                              kMaxHeadDim));
  }
  if (config.heads % config.kv_heads != 0) {
    fields.Refuse(fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}",
                              config.heads, config.kv_heads));
  }
}

// `rope` is rope_scaling or the newer rope_parameters, which may hold rope_theta too.
void ParseRope(Fields& rope, ModelConfig& config) {
  config.rope_theta = rope.Number("rope_theta", 1.0, 1e12, config.rope_theta);
  const std::string type = rope.Text("rope_type", rope.Text("type", "default").c_str());
  RopeScaling& scaling = config.rope_scaling;
  if (type == "default") return;
  if (type == "linear") {
    scaling.kind = RopeScaling::Kind::kLinear;
  } else if (type == "llama3") {
    scaling.kind = RopeScaling::Kind::kLlama3;
  } else {
    rope.Refuse(fmt::format("is of type {}, but only default, linear and llama3 are supported",
                            Printable(type)));
    return;
  }
  scaling.factor = rope.Number("factor", 1.0, 1e6, std::nullopt);
  if (scaling.kind != RopeScaling::Kind::kLlama3) return;
  scaling.low_frequency_factor = rope.Number("low_freq_factor", 1e-6, 1e6, std::nullopt);
  scaling.high_frequency_factor = rope.Number("high_freq_factor", 1e-6, 1e6, std::nullopt);
  scaling.original_positions = rope.Integer("original_max_position_embeddings", 1, kMaxPositions);
  if (!(scaling.low_frequency_factor < scaling.high_frequency_factor)) {
    rope.Refuse("low_freq_factor must be below high_freq_factor");
  }
}

Status ParseRopeFields(Fields& fields, ModelConfig& config) {
  config.rope_theta = fields.Number("rope_theta", 1.0, 1e12, config.rope_theta);
  if (fields.Number("partial_rotary_factor", 0.0, 1.0, 1.0) != 1.0) {
    fields.Refuse("partial_rotary_factor is not 1, which is not supported");
  }
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const Json* json = fields.Find(name);
    if (json == nullptr) continue;
    if (!json->is_object()) {
      fields.Refuse(fmt::format("{} must be null or an object", name));
      break;
    }
    Fields rope(*json, fmt::format("{}: {}", fields.where(), name));
    ParseRope(rope, config);
    FT_RETURN_IF_ERROR(rope.status());
  }
  return {};
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
  Fields fields(json, std::string(where));
  ModelConfig config;
  CheckFamily(fields, config);
  ParseSizes(fields, config);
  RefuseUnsupported(fields, config);
  config.norm_epsilon = static_cast<float>(fields.Number("rms_norm_eps", 1e-30, 1.0, 1e-6));
  config.tied_embeddings = fields.Flag("tie_word_embeddings");
  config.eos = fields.Tokens("eos_token_id", config.vocabulary);
  if (const auto bos = fields.Tokens("bos_token_id", config.vocabulary); !bos.empty()) {
    config.bos = bos[0];
  }
  FT_RETURN_IF_ERROR(fields.status());
  FT_RETURN_IF_ERROR(ParseRopeFields(fields, config));
  FT_RETURN_IF_ERROR(fields.status());
  return config;
}

Status ApplyGenerationConfig(std::string_view text, std::string_view where, ModelConfig* config) {
  FT_ASSIGN_OR_RETURN(const Json json, ParseObject(text, where));
  Fields fields(json, std::string(where));
  auto eos = fields.Tokens("eos_token_id", config->vocabulary);
  const auto bos = fields.Tokens("bos_token_id", config->vocabulary);
  FT_RETURN_IF_ERROR(fields.status());
  if (!eos.empty()) config->eos = std::move(eos);
  if (!bos.empty()) config->bos = bos[0];
  return {};
}

Result<ModelConfig> ReadModelConfig(const ModelFolder& folder) {
  FT_ASSIGN_OR_RETURN(
      ModelConfig config,
      ParseModelConfig(folder.config_json(), (folder.directory() / "config.json").string()));
  if (!folder.generation_config_json().empty()) {
    FT_RETURN_IF_ERROR(
        ApplyGenerationConfig(folder.generation_config_json(),
                              (folder.directory() / "generation_config.json").string(), &config));
  }
  return config;
}

}  // namespace foretoken
