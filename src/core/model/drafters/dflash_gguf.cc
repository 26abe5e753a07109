#include "core/model/drafters/dflash_gguf.h"

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

constexpr const char* kDflashArchitecture = "dflash";
constexpr const char* kMaskToken = "tokenizer.ggml.mask_token_id";
constexpr std::string_view kFromLast = "dflash.sample_from_anchor";

// What changes the computation and is not read.
constexpr std::string_view kNotRead[] = {
    "dflash.attention.sliding_window", "dflash.conv_kernel_size", "dflash.embedding_scale",
    "dflash.hyper_connection_count",   "dflash.logit_scale",      "dflash.selector_rank"};

// Layers are those that the stream enters; our form names them by what leaves them.
Status ReadDflashLayers(const GgufMetadata& metadata, Json* own) {
  constexpr const char* kKey = "dflash.target_layers";
  std::optional<GgufArray> layers;
  FT_RETURN_IF_ERROR(metadata.Array(kKey, &layers));
  if (!layers) return Invalid("lacks the key {}", kKey);
  if (layers->type == GgufType::kString || layers->type == GgufType::kArray) {
    return Invalid("the key {} must be a list of whole numbers", kKey);
  }
  for (const double layer : layers->Numbers()) {
    if (!(layer >= 0 && layer <= kMaxLayers)) {
      return Invalid("{} has {}, which is no layer", kKey, layer);
    }
    (*own)["target_layer_ids"].push_back(static_cast<int>(layer) - 1);
  }
  return {};
}

Status RefuseWhatIsNotRead(const GgufMetadata& metadata) {
  for (const std::string_view key : kNotRead) {
    if (metadata.Find(key) == nullptr) continue;
    return Invalid("has {}, which is not read of GGUF files of drafters", key);
  }
  for (const auto& [key, value] : metadata.values()) {
    const auto* flag = std::get_if<bool>(&value);
    if (flag == nullptr || !*flag || !key.starts_with("dflash.") || key == kFromLast) continue;
    return Invalid("{} is true, and what that changes is not known", Printable(key));
  }
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
  FT_RETURN_IF_ERROR(RefuseWhatIsNotRead(metadata));
  Json& own = (*config)["dflash_config"];
  FT_RETURN_IF_ERROR(ReadDflashLayers(metadata, &own));
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
  // Its table has a token of the target for each of its own.
  if (const auto drafted = file.others.find("d2t"); drafted != file.others.end()) {
    (*config)["draft_vocab_size"] = drafted->second.data.size() / sizeof(std::int64_t);
  }
  return {};
}

}  // namespace

bool IsDflashGguf(const Checkpoint& file) {
  std::string architecture;
  return file.gguf.has_value() && file.gguf->String("general.architecture", &architecture).ok() &&
         architecture == kDflashArchitecture;
}

Result<std::string> DflashFromGguf(const Checkpoint& file, int vocabulary) {
  const std::string where = file.path.string();
  FT_ASSIGN_OR_RETURN(
      const std::string layers,
      LayersFromGguf(*file.gguf, file.tensors, kDflashArchitecture, kQwen3, vocabulary, where));
  Json config = Json::Parse(layers);
  // Layers of Qwen3 always have these norms.
  for (const char* name : {"qk_layernorm", "use_qk_norm"}) config.erase(name);
  const Status read = ReadDflashKeys(file, &config);
  if (!read.ok()) return Invalid("{}: {}", where, read.error().message);
  return config.dump(2);
}

}  // namespace foretoken
