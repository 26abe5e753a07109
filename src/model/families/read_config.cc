#include "model/families/read_config.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "base/printable.h"
#include "json/read_json_object.h"
#include "model/config/config_fields.h"
#include "model/families/family.h"

namespace foretoken {
namespace {

using Json = ConfigFields::Json;

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
    fields.Refuse(
        fmt::format("describes {} (model_type '{}'), but there are {}",
                    config->architecture.empty() ? "unknown" : Printable(config->architecture),
                    Printable(type), NamesOfAll()));
    return nullptr;
  }
  if (config->architecture.empty()) config->architecture = family->architecture;
  config->family = family->name;
  return family;
}

}  // namespace

Result<ModelConfig> ParseModelConfig(std::string_view text, std::string_view where, int context) {
  FT_ASSIGN_OR_RETURN(Json json, ParseJsonObject(text, where));
  if (json.contains("text_config") && json["text_config"].is_object()) {
    Json inner = json["text_config"];
    for (const char* name : {"architectures", "eos_token_id", "bos_token_id"}) {
      if (json.contains(name) && !inner.contains(name)) inner[name] = json[name];
    }
    json = std::move(inner);
  }
  Status status;
  ConfigFields fields(&json, std::string(where), &status);
  ModelConfig config;
  const Family* family = FindFamily(fields, &config);
  FT_RETURN_IF_ERROR(status);
  if (!family->defaults.empty()) {
    Json all = Json::parse(family->defaults);
    all.update(json);
    json = std::move(all);
  }
  DescribeUsual(fields, context, &config);
  FT_RETURN_IF_ERROR(status);
  if (family->describe != nullptr) family->describe(fields, &config);
  FT_RETURN_IF_ERROR(status);
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
  FT_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(config_json, config_place, context));
  const auto& [generation_json, generation_place] = checkpoint.generation_config;
  if (!generation_json.empty()) {
    FT_RETURN_IF_ERROR(ApplyGenerationConfig(generation_json, generation_place, &config));
  }
  return config;
}

}  // namespace foretoken
