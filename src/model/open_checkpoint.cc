#include "model/open_checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/printable.h"
#include "model/families/family.h"
#include "model/families/gguf_config.h"
#include "model/families/read_config.h"
#include "weights/requantize.h"

namespace foretoken {
namespace {

// A tensor that the family does not have might change what is computed, unless it is none of the
// text model: what else a folder's model sees and hears with.
Status RefuseUnknown(const Checkpoint& checkpoint, const Family& family) {
  const bool gguf = checkpoint.gguf.has_value();
  for (const auto& [name, view] : checkpoint.tensors) {
    const bool known = !OurName(family, gguf, name).empty() || (gguf && IsOfGgufConfig(name));
    const bool of_text = gguf || name.starts_with("model.layers.");
    if (known || !of_text || name.ends_with(".inv_freq")) continue;
    return InvalidInput(fmt::format("{}: has tensor '{}', which is none of a {} model",
                                    checkpoint.path.string(), Printable(name), family.name));
  }
  return {};
}

}  // namespace

MixBasis MixBasisOf(const ModelConfig& config) {
  const AttentionSpec& attention = config.first_attention();
  return {.layers = config.layer_count(),
          .queries_per_kv_head = attention.heads / std::max(1, attention.kv_heads),
          .tied_embeddings = config.tied_embeddings};
}

Result<Checkpoint> OpenCheckpoint(const std::filesystem::path& path, std::string_view weights) {
  WeightType type;
  if (!weights.empty()) {
    FT_ASSIGN_OR_RETURN(type, ParseWeightType(weights));
  }
  FT_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(path));
  const bool gguf = checkpoint.gguf.has_value();
  if (gguf) {
    FT_ASSIGN_OR_RETURN(checkpoint.config.json,
                        ConfigFromGguf(*checkpoint.gguf, checkpoint.tensors, path.string()));
  }
  FT_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(checkpoint));
  const Family& family = *FamilyNamed(config.family);
  FT_RETURN_IF_ERROR(RefuseUnknown(checkpoint, family));
  checkpoint.Rename(
      [&](std::string_view name) { return OurName(family, gguf, name); },
      [&family, gguf](std::string_view name) { return NameInFile(family, gguf, name); });
  checkpoint.alternating_heads = family.neighbours == Neighbours::kAlways ||
                                 (gguf && family.neighbours == Neighbours::kInGguf);
  checkpoint.gains_less_one = !gguf && family.folder_gains_less_one;
  if (!gguf && family.arrange != nullptr) FT_RETURN_IF_ERROR(family.arrange(&checkpoint));
  if (weights.empty()) return checkpoint;
  return Requantize(std::move(checkpoint), type, MixBasisOf(config));
}

Precision UsualPrecision(const Checkpoint& checkpoint) {
  return checkpoint.quantized() ? Precision::kPortable : Precision::kBF16;
}

}  // namespace foretoken
