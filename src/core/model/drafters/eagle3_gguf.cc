#include "core/model/drafters/eagle3_gguf.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text/printable.h"
#include "core/model/config/config_fields.h"
#include "core/model/families/family.h"
#include "core/model/families/gguf/gguf_config.h"

namespace foretoken {
namespace {

constexpr const char* kEagle3Architecture = "eagle3";
constexpr std::string_view kNormedStream = "eagle3.norm_before_residual";

// Layers are those that the stream enters.
Status ReadEagle3Layers(const GgufMetadata& metadata, Json* config) {
  std::optional<GgufArray> layers;
  FT_RETURN_IF_ERROR(metadata.Array("eagle3.extract_layers", &layers));
  if (!layers) return {};
  if (layers->type == GgufType::kString || layers->type == GgufType::kArray) {
    return InvalidInput("the key eagle3.extract_layers must be a list of whole numbers");
  }
  Json& points = (*config)["eagle_aux_hidden_state_layer_ids"];
  for (const double layer : layers->Numbers()) {
    if (!(layer >= 0 && layer <= kMaxLayers)) {
      return Invalid("eagle3.extract_layers has {}, which is no layer", layer);
    }
    points.push_back(static_cast<int>(layer));
  }
  return {};
}

Status RefuseUnknownEagle3Flags(const GgufMetadata& metadata) {
  for (const auto& [key, value] : metadata.values()) {
    const auto* flag = std::get_if<bool>(&value);
    if (flag == nullptr || !*flag || !key.starts_with("eagle3.") || key == kNormedStream) continue;
    return Invalid("{} is true, and what that changes is not known", Printable(key));
  }
  return {};
}

Status ReadEagle3Keys(const Checkpoint& file, Json* config) {
  const GgufMetadata& metadata = *file.gguf;
  FT_RETURN_IF_ERROR(RefuseUnknownEagle3Flags(metadata));
  FT_RETURN_IF_ERROR(ReadEagle3Layers(metadata, config));
  bool normed_stream = false;
  FT_RETURN_IF_ERROR(metadata.Flag(kNormedStream, &normed_stream));
  (*config)["norm_before_residual"] = normed_stream;
  std::int64_t target = 0;
  FT_RETURN_IF_ERROR(metadata.Integer("eagle3.target_hidden_size", 1, kMaxHidden, &target));
  if (target > 0) (*config)["target_hidden_size"] = target;
  // Its table has a token of the target for each of its own.
  (*config)["draft_vocab_size"] = (*config)["vocab_size"];
  if (const auto drafted = file.others.find("d2t"); drafted != file.others.end()) {
    (*config)["draft_vocab_size"] = drafted->second.data.size() / sizeof(std::int64_t);
  }
  return {};
}

}  // namespace

bool IsEagle3Gguf(const Checkpoint& file) {
  std::string architecture;
  return file.gguf.has_value() && file.gguf->String("general.architecture", &architecture).ok() &&
         architecture == kEagle3Architecture;
}

Result<std::string> Eagle3FromGguf(const Checkpoint& file) {
  const std::string where = file.path.string();
  FT_ASSIGN_OR_RETURN(const std::string layers,
                      LayersFromGguf(*file.gguf, file.tensors, kEagle3Architecture, kLlama,
                                     /*vocabulary=*/0, where));
  Json config = Json::Parse(layers);
  const Status read = ReadEagle3Keys(file, &config);
  if (!read.ok()) return Invalid("{}: {}", where, read.error().message);
  return config.dump(2);
}

}  // namespace foretoken
