#include "core/model/drafters/drafter_gguf.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "base/text/printable.h"
#include "core/model/config/config_fields.h"
#include "core/model/families/family.h"
#include "core/model/families/gguf/gguf_config.h"
#include "foretoken/speculation.h"

namespace foretoken {
namespace {

constexpr const char* kEagle3Architecture = "eagle3";
constexpr const char* kDflashArchitecture = "dflash";
constexpr const char* kMaskToken = "tokenizer.ggml.mask_token_id";
constexpr std::string_view kNormedStream = "eagle3.norm_before_residual";
constexpr std::string_view kFromLast = "dflash.sample_from_anchor";

// What changes the computation of DFlash and is not read.
constexpr std::string_view kNotRead[] = {
    "dflash.attention.sliding_window", "dflash.conv_kernel_size", "dflash.embedding_scale",
    "dflash.hyper_connection_count",   "dflash.logit_scale",      "dflash.selector_rank"};

std::string ArchitectureOf(const Checkpoint& file) {
  std::string architecture;
  if (file.gguf.has_value() && !file.gguf->String("general.architecture", &architecture).ok()) {
    return {};
  }
  return architecture;
}

// Appends the layers that the stream enters, each moved by `moved`; none where the key is absent.
Status ReadPoints(const GgufMetadata& metadata, const char* key, int moved, Json* points) {
  std::optional<GgufArray> layers;
  FT_RETURN_IF_ERROR(metadata.Array(key, &layers));
  if (!layers) return {};
  if (layers->type == GgufType::kString || layers->type == GgufType::kArray) {
    return Invalid("the key {} must be a list of whole numbers", key);
  }
  for (const double layer : layers->Numbers()) {
    if (!(layer >= 0 && layer <= kMaxLayers)) {
      return Invalid("{} has {}, which is no layer", key, layer);
    }
    points->push_back(static_cast<int>(layer) + moved);
  }
  return {};
}

Status RefuseUnknownKeys(const GgufMetadata& metadata, const std::string& architecture) {
  for (const auto& [key, value] : metadata.values()) {
    const auto* flag = std::get_if<bool>(&value);
    if (flag == nullptr || !*flag || !key.starts_with(architecture + ".")) continue;
    if (key == kNormedStream || key == kFromLast) continue;
    return Invalid("{} is true, and what that changes is not known", Printable(key));
  }
  return {};
}

// The table of a drafter has a token of the target for each of its own.
void CountDraftedTokens(const Checkpoint& file, Json* config) {
  if (const auto drafted = file.others.find("d2t"); drafted != file.others.end()) {
    (*config)["draft_vocab_size"] = drafted->second.data.size() / sizeof(std::int64_t);
  }
}

Status ReadEagle3Keys(const Checkpoint& file, Json* config) {
  const GgufMetadata& metadata = *file.gguf;
  FT_RETURN_IF_ERROR(RefuseUnknownKeys(metadata, kEagle3Architecture));
  constexpr const char* kLayers = "eagle3.extract_layers";
  if (metadata.Find(kLayers) != nullptr) {
    Json& points = (*config)["eagle_aux_hidden_state_layer_ids"];
    FT_RETURN_IF_ERROR(ReadPoints(metadata, kLayers, 0, &points));
  }
  bool normed_stream = false;
  FT_RETURN_IF_ERROR(metadata.Flag(kNormedStream, &normed_stream));
  (*config)["norm_before_residual"] = normed_stream;
  std::int64_t target = 0;
  FT_RETURN_IF_ERROR(metadata.Integer("eagle3.target_hidden_size", 1, kMaxHidden, &target));
  if (target > 0) (*config)["target_hidden_size"] = target;
  (*config)["draft_vocab_size"] = (*config)["vocab_size"];
  CountDraftedTokens(file, config);
  return {};
}

Status ReadInteger(const GgufMetadata& metadata, const char* key, std::int64_t most, Json* field) {
  if (metadata.Find(key) == nullptr) return Invalid("lacks the key {}", key);
  std::int64_t value = 0;
  FT_RETURN_IF_ERROR(metadata.Integer(key, 0, most, &value));
  *field = value;
  return {};
}

Status ReadDflashKeys(const Checkpoint& file, Json* config) {
  const GgufMetadata& metadata = *file.gguf;
  for (const std::string_view key : kNotRead) {
    if (metadata.Find(key) == nullptr) continue;
    return Invalid("has {}, which is not read of GGUF files of drafters", key);
  }
  FT_RETURN_IF_ERROR(RefuseUnknownKeys(metadata, kDflashArchitecture));
  constexpr const char* kLayers = "dflash.target_layers";
  if (metadata.Find(kLayers) == nullptr) return Invalid("lacks the key {}", kLayers);
  Json& own = (*config)["dflash_config"];
  // Our form names layers by what leaves them.
  FT_RETURN_IF_ERROR(ReadPoints(metadata, kLayers, -1, &own["target_layer_ids"]));
  FT_RETURN_IF_ERROR(ReadInteger(metadata, kMaskToken, kMaxVocabulary - 1, &own["mask_token_id"]));
  FT_RETURN_IF_ERROR(
      ReadInteger(metadata, "dflash.block_size", kMaxProposal + 1, &(*config)["block_size"]));
  const TensorView* const numbers = file.Find("markov_w1.weight");
  bool from_last = numbers != nullptr;
  FT_RETURN_IF_ERROR(metadata.Flag(kFromLast, &from_last));
  (*config)["sample_from_anchor"] = from_last;
  if (numbers != nullptr) {
    // Files have the kind that adds the numbers as they are.
    (*config)["markov_rank"] = numbers->shape.empty() ? 0 : numbers->shape.back();
    const bool confidence = file.Find("conf_proj.weight") != nullptr;
    (*config)["enable_confidence_head"] = confidence;
    (*config)["confidence_head_with_markov"] = confidence;
  }
  CountDraftedTokens(file, config);
  return {};
}

}  // namespace

bool IsDrafterGguf(const Checkpoint& file) {
  const std::string architecture = ArchitectureOf(file);
  return architecture == kEagle3Architecture || architecture == kDflashArchitecture;
}

Result<std::string> DrafterFromGguf(const Checkpoint& file, int vocabulary) {
  const bool dflash = ArchitectureOf(file) == kDflashArchitecture;
  const std::string where = file.path.string();
  FT_ASSIGN_OR_RETURN(
      const std::string layers,
      LayersFromGguf(*file.gguf, file.tensors, dflash ? kDflashArchitecture : kEagle3Architecture,
                     dflash ? kQwen3 : kLlama, dflash ? vocabulary : 0, where));
  Json config = Json::Parse(layers);
  if (dflash) {
    // Layers of Qwen3 always have these norms.
    for (const char* name : {"qk_layernorm", "use_qk_norm"}) config.erase(name);
  }
  const Status read = dflash ? ReadDflashKeys(file, &config) : ReadEagle3Keys(file, &config);
  if (!read.ok()) return Invalid("{}: {}", where, read.error().message);
  return config.dump(2);
}

}  // namespace foretoken
