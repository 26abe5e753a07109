#include "core/model/open_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/text/printable.h"
#include "core/model/families/family.h"
#include "core/model/families/gguf/gguf_config.h"
#include "core/model/families/model_part.h"
#include "core/model/families/read_config.h"
#include "core/weights/requantize.h"

namespace foretoken {
namespace {

// Takes out, and says, what is not used. A tensor of the text model that the family does not have
// might change what is computed, and is refused.
Status LeaveOut(const Family& family, int layers, Checkpoint* checkpoint) {
  const bool gguf = checkpoint->gguf.has_value();
  for (const auto& [name, other] : checkpoint->others) {
    if (PartOf(family, gguf, layers, name) != ModelPart::kText) continue;
    return Invalid("{}: tensor '{}' has dtype {}, {}", checkpoint->path.string(), Printable(name),
                   other.dtype,
                   gguf ? "which no weight has" : "but only F32, F16, BF16 and U8 are supported");
  }
  for (const UnusedPart& part :
       UnusedParts(family, gguf, layers, checkpoint->tensors, checkpoint->others)) {
    if (part.part == ModelPart::kUnknown) {
      return Invalid("{}: has tensor '{}', which is none of a {} model", checkpoint->path.string(),
                     Printable(part.tensors.front()), family.name);
    }
    if (const std::string name = part.OfOrdinaryLayer(gguf);
        part.part == ModelPart::kPrediction && !name.empty()) {
      return Invalid("{}: has tensor '{}' of an ordinary layer, but by {} there are only {} layers",
                     checkpoint->path.string(), Printable(name),
                     gguf ? "the metadata" : "num_hidden_layers in config.json", layers);
    }
    for (const std::string& name : part.tensors) checkpoint->tensors.erase(name);
    checkpoint->not_used.push_back(part.Sentence());
  }
  return {};
}

// Files of a model that reads and says tokens by one table may have that twice.
void LeaveOutCopyOfTable(Checkpoint* checkpoint) {
  const TensorView* head = checkpoint->Find("head.weight");
  const TensorView* table = checkpoint->Find("embedding.weight");
  if (head == nullptr || table == nullptr || head->format != table->format ||
      head->shape != table->shape) {
    return;
  }
  const bool same = std::memcmp(head->data, table->data, head->bytes()) == 0;
  for (const char* name : {"head.weight", "embedding.weight"}) checkpoint->Release(name);
  if (same) checkpoint->tensors.erase("head.weight");
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
  const int layers = config.layer_count();
  FT_RETURN_IF_ERROR(LeaveOut(family, layers, &checkpoint));
  checkpoint.Rename(
      [&](std::string_view name) { return OurName(family, gguf, name); },
      [&family, gguf](std::string_view name) { return NameInFile(family, gguf, name); });
  if (config.tied_embeddings) LeaveOutCopyOfTable(&checkpoint);
  checkpoint.alternating_heads = family.neighbours == Neighbours::kAlways ||
                                 (gguf && family.neighbours == Neighbours::kInGguf);
  checkpoint.gains_less_one = !gguf && family.folder_gains_less_one;
  if (!gguf && family.arrange != nullptr) FT_RETURN_IF_ERROR(family.arrange(&checkpoint));
  if (!gguf && family.reads_as_gguf) family.arrange_for_gguf(&checkpoint, config);
  if (weights.empty()) return checkpoint;
  return Requantize(std::move(checkpoint), type, MixBasisOf(config));
}

Precision UsualPrecision(const Checkpoint& checkpoint) {
  return checkpoint.quantized() ? Precision::kPortable : Precision::kBF16;
}

}  // namespace foretoken
