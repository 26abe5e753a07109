#include "model/memory_needs.h"

namespace foretoken {

MemoryNeeds EstimateMemory(const ModelConfig& config, const Backend& backend) {
  const std::size_t element = backend.precision() == Precision::kBF16 ? 2 : 4;
  KvShape shape{config.layers, config.kv_heads, config.head_dim, 1};
  MemoryNeeds needs;
  needs.weight_bytes = static_cast<std::size_t>(config.parameters()) * element;
  // A pass reads one row of an embedding table that is not the lm head too.
  const std::int64_t looked_up =
      config.tied_embeddings ? 0 : std::int64_t{config.vocabulary - 1} * config.hidden;
  needs.weight_bytes_per_pass = needs.weight_bytes - static_cast<std::size_t>(looked_up) * element;
  needs.kv_bytes_per_token = backend.KvBytes(shape) / kBlockSize;
  shape.blocks = BlocksFor(config.max_positions);
  needs.kv_bytes_per_sequence = backend.KvBytes(shape);
  return needs;
}

}  // namespace foretoken
