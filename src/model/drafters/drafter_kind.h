#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/config/config_fields.h"
#include "model/config/model_config.h"
#include "model/drafters/drafter_names.h"

namespace foretoken {

/// Drafters that are described alike. A kind is a file of this folder.
struct DrafterKind {
  std::string_view name;  ///< As errors call it.
  std::span<const DrafterTensor> tensors;
  /// What `json`, a config.json that errors call `where`, says for `target`; `embedded` is
  /// its vocab_size. Adds what a user should know to `notes`.
  Result<ModelConfig> (*describe)(const ConfigFields::Json& json, const std::string& where,
                                  const ModelConfig& target, std::vector<std::string>* notes);
};

extern const DrafterKind kEagle1;
extern const DrafterKind kEagle3;

/// The layers of a family's kind that `json`, an object as a model's config.json, describes;
/// `embedded` and `vocabulary` are both its vocab_size.
Result<ModelConfig> DescribeLayers(ConfigFields::Json json, const std::string& where,
                                   std::string_view family);

/// Refuses a field of `json` that is true and none of `known`: what it turns on is not computed.
void RefuseUnknownFlags(const ConfigFields::Json& json, std::span<const std::string_view> known,
                        ConfigFields* fields);

}  // namespace foretoken
