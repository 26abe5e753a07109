#include "core/model/memory_needs.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "base/numbers/integers.h"
#include "core/model/model.h"

namespace foretoken {
namespace {

std::size_t PackedBytes(const TensorView& tensor, Precision precision) {
  switch (precision) {
    case Precision::kBF16:
      return Size(tensor.elements()) * 2;
    case Precision::kF32:
      return Size(tensor.elements()) * 4;
    case Precision::kPortable:
      return FormatBytes(PortableFormat(tensor.format), tensor.elements());
  }
  return 0;
}

// How often what makes a layer's keys and values is packed: not at all where the layer reads those
// of another, twice where it makes keys and values alike.
std::size_t TimesPacked(const ModelConfig& config, std::string_view name) {
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const AttentionSpec& attention = config.layers[i].attention;
    const auto is = [&](const char* tensor) {
      return name == fmt::format("layers.{}.{}.weight", i, tensor);
    };
    if (attention.kv_from >= 0 && (is("k") || is("v") || is("k_norm"))) return 0;
    if (attention.keys_as_values && is("k")) return 2;
  }
  return 1;
}

// One of those of which a row reads some.
bool IsOfExperts(std::string_view name) { return name.find(".experts.") != std::string_view::npos; }

// A row reads those experts of a layer that it chooses.
std::size_t BytesOfRow(const ModelConfig& config, std::string_view name, std::size_t bytes) {
  if (!IsOfExperts(name)) return bytes;
  for (const LayerSpec& layer : config.layers) {
    const Routing& routing = layer.mlp.routing;
    if (!layer.mlp.has_experts()) continue;
    return bytes * Size(routing.chosen) / static_cast<std::size_t>(routing.experts);
  }
  return bytes;
}

}  // namespace

MemoryNeeds EstimateMemory(const ModelConfig& config, const TensorMap& tensors,
                           const Backend& backend, ExpertsPlace experts) {
  KvShape shape = KvShapeOf(config, 1);
  MemoryNeeds needs;
  for (const auto& [name, tensor] : tensors) {
    const bool head = name == "head.weight";
    if (head && config.tied_embeddings) continue;  // Not read.
    if ((name == "embedding.weight" && !config.tied_embeddings) || name == "layer_inputs.weight" ||
        name == "markov.tokens.weight") {
      // Left in the file, of which a pass over one row reads a row.
      needs.weight_bytes_per_pass += tensor.bytes() / Size(config.embeddings());
      continue;
    }
    if (experts == ExpertsPlace::kFile && IsOfExperts(name) && name.ends_with(".weight")) {
      needs.mapped_bytes += tensor.bytes();
      needs.weight_bytes_per_pass += BytesOfRow(config, name, tensor.bytes());
      continue;
    }
    const std::size_t bytes = PackedBytes(tensor, backend.precision()) * TimesPacked(config, name);
    needs.weight_bytes += bytes;
    needs.weight_bytes_per_pass += BytesOfRow(config, name, bytes);
  }
  needs.kv_bytes_per_token = backend.KvBytes(shape) / kBlockSize;
  shape.blocks = BlocksFor(config.max_positions);
  const int window = WindowOf(config);
  if (window > 0) {
    shape.recent_blocks =
        std::min(shape.blocks, BlocksFor(AnchorsOf(config)) + BlocksFor(window - 1) + 1);
  }
  needs.kv_bytes_per_sequence = backend.KvBytes(shape);
  return needs;
}

}  // namespace foretoken
