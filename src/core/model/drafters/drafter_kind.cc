#include "core/model/drafters/drafter_kind.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/printable.h"
#include "core/model/families/read_config.h"

namespace foretoken {

Result<ModelConfig> DescribeLayers(Json json, const std::string& where, std::string_view family) {
  json["model_type"] = family;
  // The class is the drafter's; texts begin and end with the target's tokens; and there is no model
  // within it.
  for (const char* name : {"architectures", "bos_token_id", "eos_token_id", "text_config"}) {
    json.erase(name);
  }
  FT_ASSIGN_OR_RETURN(ModelConfig config, ParseDescription(json.dump(), where));
  config.embedded = config.vocabulary;
  return config;
}

void RefuseUnknownFlags(const Json& json, std::span<const std::string_view> known,
                        ConfigFields* fields) {
  for (const auto& [name, value] : json.items()) {
    if (!value.is_boolean() || !value.get<bool>()) continue;
    if (std::ranges::find(known, name) != known.end()) continue;
    fields->Refuse("{} is true, and what that changes is not known", Printable(name));
  }
}

Result<ModelConfig> DescribeLayersWithin(const Json& json, const std::string& where,
                                         std::span<const std::string_view> families) {
  constexpr const char* kLayers = "transformer_layer_config";
  Status status;
  ConfigFields fields(&json, where, &status);
  ConfigFields layers = fields.Within(kLayers);
  std::string family;
  layers.String("model_type", &family);
  if (std::ranges::find(families, family) == families.end()) {
    layers.Refuse("model_type is '{}', but only {} are supported", Printable(family),
                  fmt::join(families, ", "));
  }
  FT_RETURN_IF_ERROR(status);
  return DescribeLayers(json[kLayers], fmt::format("{}: {}", where, kLayers), family);
}

}  // namespace foretoken
