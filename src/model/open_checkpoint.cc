#include "model/open_checkpoint.h"

#include <utility>

#include "weights/requantize.h"

namespace foretoken {

MixBasis MixBasisOf(const ModelConfig& config) {
  return {.layers = config.layers,
          .queries_per_kv_head = config.heads / config.kv_heads,
          .tied_embeddings = config.tied_embeddings};
}

Result<Checkpoint> OpenCheckpoint(const std::filesystem::path& path, std::string_view weights) {
  if (weights.empty()) return Checkpoint::Open(path);
  FT_ASSIGN_OR_RETURN(const WeightType type, ParseWeightType(weights));
  FT_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(path));
  FT_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(checkpoint));
  return Requantize(std::move(checkpoint), type, MixBasisOf(config));
}

Precision UsualPrecision(const Checkpoint& checkpoint) {
  return checkpoint.quantized() ? Precision::kPortable : Precision::kBF16;
}

}  // namespace foretoken
