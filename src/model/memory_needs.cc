#include "model/memory_needs.h"

namespace foretoken {
namespace {

std::size_t PackedBytes(const TensorView& tensor, Precision precision) {
  switch (precision) {
    case Precision::kBF16:
      return static_cast<std::size_t>(tensor.elements()) * 2;
    case Precision::kF32:
      return static_cast<std::size_t>(tensor.elements()) * 4;
    case Precision::kPortable:
      return FormatBytes(PortableFormat(tensor.format), tensor.elements());
  }
  return 0;
}

}  // namespace

MemoryNeeds EstimateMemory(const ModelConfig& config, const TensorMap& tensors,
                           const Backend& backend) {
  KvShape shape{config.layers, config.kv_heads, config.head_dim, 1};
  MemoryNeeds needs;
  for (const auto& [name, tensor] : tensors) {
    const bool head = name == "lm_head.weight";
    if (head && config.tied_embeddings) continue;  // Not read.
    const std::size_t bytes = PackedBytes(tensor, backend.precision());
    needs.weight_bytes += bytes;
    // A pass reads one row of an embedding table that is not the lm head too.
    const bool looked_up = name == "model.embed_tokens.weight" && !config.tied_embeddings;
    needs.weight_bytes_per_pass +=
        looked_up ? bytes / static_cast<std::size_t>(config.vocabulary) : bytes;
  }
  needs.kv_bytes_per_token = backend.KvBytes(shape) / kBlockSize;
  shape.blocks = BlocksFor(config.max_positions);
  needs.kv_bytes_per_sequence = backend.KvBytes(shape);
  return needs;
}

}  // namespace foretoken
