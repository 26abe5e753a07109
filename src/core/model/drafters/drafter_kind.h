#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/model/config/config_fields.h"
#include "core/model/config/model_config.h"
#include "core/model/drafters/drafter_names.h"

namespace foretoken {

/// Points of the target whose states a drafter reads, at most.
inline constexpr std::size_t kMaxPoints = 64;

/// Drafters that are described alike. A kind is a file of this folder.
struct DrafterKind {
  std::string_view name;  ///< As errors call it.
  std::span<const DrafterTensor> tensors;
  std::string_view prefix = "";  ///< Before the names of all of them.
  /// What `json`, a config.json that errors call `where`, says for `target`; `embedded` is
  /// its vocab_size. Adds what a user should know to `notes`.
  Result<ModelConfig> (*describe)(const Json& json, const std::string& where,
                                  const ModelConfig& target, std::vector<std::string>* notes);
};

extern const DrafterKind kDflash;
extern const DrafterKind kDspark;
extern const DrafterKind kEagle1;
extern const DrafterKind kEagle3;
extern const DrafterKind kMtp;
extern const DrafterKind kPeagle;

/// The layers of a family's kind that `json`, an object as a model's config.json, describes;
/// `embedded` and `vocabulary` are both its vocab_size.
Result<ModelConfig> DescribeLayers(Json json, const std::string& where, std::string_view family);

/// The same of the object that `speculators` keep within theirs, of one of these families.
Result<ModelConfig> DescribeLayersWithin(const Json& json, const std::string& where,
                                         std::span<const std::string_view> families);

/// Refuses a field of `json` that is true and none of `known`: what it turns on is not computed.
void RefuseUnknownFlags(const Json& json, std::span<const std::string_view> known,
                        ConfigFields* fields);

}  // namespace foretoken
