#include "core/model/families/read_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/text/printable.h"
#include "core/model/config/config_fields.h"
#include "core/model/families/family.h"
#include "json/read_json_object.h"

namespace foretoken {
namespace {

std::string NamesOfAll() {
  std::string names;
  for (const Family* family : Families()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", family->architecture);
  }
  return names;
}

// By model_type, or else by the class that `architectures` names.
const Family* FindFamily(ConfigFields& fields, ModelConfig* config) {
  if (const Json* list = fields.Find("architectures");
      list != nullptr && list->is_array() && !list->empty() && (*list)[0].is_string()) {
    config->architecture = (*list)[0].get<std::string>();
  }
  std::string type;
  fields.String("model_type", &type);
  const Family* family = FamilyNamed(type);
  for (const Family* each : Families()) {
    if (type.empty() && config->architecture == each->architecture) family = each;
  }
  // A class of its own with the type of a family is computed in another way.
  if (family == nullptr ||
      !(config->architecture.empty() || config->architecture == family->architecture ||
        config->architecture.ends_with("ForConditionalGeneration"))) {
    fields.Refuse("describes {} (model_type '{}'), but there are {}",
                  config->architecture.empty() ? "unknown" : Printable(config->architecture),
                  Printable(type), NamesOfAll());
    return nullptr;
  }
  if (config->architecture.empty()) config->architecture = family->architecture;
  config->family = family->name;
  return family;
}

// The classes of models that see or hear besides which say themselves whether the head is the
// embedding table, and what they say where config.json leaves it out. Of others the text model says
// it.
constexpr std::pair<std::string_view, bool> kTiedWrappers[] = {{"mistral3", true},
                                                               {"gemma3", true},
                                                               {"gemma4", true},
                                                               {"qwen3_5", false},
                                                               {"qwen3_5_moe", false}};

// The text model of such a configuration.
Json TextConfig(const Json& json) {
  Json text = json["text_config"];
  for (const char* name : {"architectures", "eos_token_id", "bos_token_id"}) {
    if (json.contains(name) && !text.contains(name)) text[name] = json[name];
  }
  if (json.contains("quantization_config")) {
    text["quantization_config"] = json["quantization_config"];
  }
  constexpr const char* kTied = "tie_word_embeddings";
  const Json type = json.value("model_type", Json());
  for (const auto& [wrapper, tied] : kTiedWrappers) {
    if (type == wrapper) text[kTied] = tied;
  }
  if (json.contains(kTied)) text[kTied] = json[kTied];
  return text;
}

// Fields that all classes have and that are refused or said where they are missing.
constexpr std::string_view kFieldsOfAll[] = {
    "architectures",     "model_type",          "hidden_size",
    "intermediate_size", "num_hidden_layers",   "num_attention_heads",
    "vocab_size",        "eos_token_id",        "bos_token_id",
    "rope_scaling",      "rope_parameters",     "original_max_position_embeddings",
    "per_layer_config",  "quantization_config", "pard_token"};
// What most classes have, each as it is where config.json leaves it out; Family::fields has what
// is otherwise.
constexpr std::string_view kUsualFields = R"({
    "head_dim": null, "hidden_act": "silu", "max_position_embeddings": 2048,
    "num_key_value_heads": null, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
    "tie_word_embeddings": false})";

Json AsClassReads(const Family& family, const Json& json) {
  Json all = Json::Parse(kUsualFields);
  all.update(Json::Parse(family.relatives_fields));
  all.update(Json::Parse(family.fields));
  // Whatever there is of a rotation takes the place of the class's own.
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    if (json.contains(name) && !json[name].empty()) all.erase("rope_parameters");
  }
  for (const auto& [name, value] : json.items()) {
    const bool of_all = std::ranges::find(kFieldsOfAll, name) != std::end(kFieldsOfAll);
    if (of_all ? !value.is_null() : all.contains(name)) all[name] = value;
  }
  constexpr const char* kShare = "partial_rotary_factor";
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    if (all.contains(kShare) || !all.contains(name) || !all[name].is_object()) continue;
    if (all[name].value("rope_type", Json()) != "proportional") all[name].erase(kShare);
  }
  return all;
}

Status DescribeFamily(const Family& family, ConfigFields& fields, int context,
                      ModelConfig* config) {
  DescribeUsual(fields, context, config);
  if (fields.ok() && family.describe != nullptr) family.describe(fields, config);
  return fields.status();
}

}  // namespace

Result<ModelConfig> ParseModelConfig(std::string_view text, std::string_view where, int context) {
  FT_ASSIGN_OR_RETURN(Json json, ParseJsonObject(text, where));
  if (json.contains("text_config") && json["text_config"].is_object()) json = TextConfig(json);
  Status status;
  ConfigFields fields(&json, std::string(where), &status);
  ModelConfig config;
  const Family* family = FindFamily(fields, &config);
  FT_RETURN_IF_ERROR(status);
  json = AsClassReads(*family, json);
  FT_RETURN_IF_ERROR(DescribeFamily(*family, fields, context, &config));
  return config;
}

Result<ModelConfig> ParseDescription(std::string_view text, std::string_view where, int context) {
  FT_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(text, where));
  Status status;
  ConfigFields fields(&json, std::string(where), &status);
  ModelConfig config;
  const Family* family = FindFamily(fields, &config);
  FT_RETURN_IF_ERROR(status);
  FT_RETURN_IF_ERROR(DescribeFamily(*family, fields, context, &config));
  return config;
}

Status ApplyGenerationConfig(std::string_view text, std::string_view where, ModelConfig* config) {
  FT_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(text, where));
  Status status;
  ConfigFields fields(&json, std::string(where), &status);
  auto eos = fields.Tokens("eos_token_id", config->vocabulary);
  const auto bos = fields.Tokens("bos_token_id", config->vocabulary);
  FT_RETURN_IF_ERROR(status);
  if (!eos.empty()) config->eos = std::move(eos);
  if (!bos.empty()) config->bos = bos[0];
  return {};
}

Result<ModelConfig> ReadModelConfig(const Checkpoint& checkpoint, int context) {
  const auto& [config_json, config_place] = checkpoint.config;
  const auto parse = checkpoint.gguf ? ParseDescription : ParseModelConfig;
  FT_ASSIGN_OR_RETURN(ModelConfig config, parse(config_json, config_place, context));
  // OpenCheckpoint has left out a copy of the embedding table.
  if (checkpoint.Find("head.weight") != nullptr) config.tied_embeddings = false;
  const auto& [generation_json, generation_place] = checkpoint.generation_config;
  if (!generation_json.empty()) {
    FT_RETURN_IF_ERROR(ApplyGenerationConfig(generation_json, generation_place, &config));
  }
  return config;
}

}  // namespace foretoken
