#pragma once

#include <cstddef>

#include "core/backend/backend.h"
#include "core/model/config/model_config.h"
#include "core/tensor/tensor_map.h"
#include "foretoken/model.h"

namespace foretoken {

/// What a model of these tensors takes on a backend, to be known before loading it.
struct MemoryNeeds {
  /// Packed weights. An embedding table that is not the head too stays in the model's file.
  std::size_t weight_bytes = 0;
  std::size_t mapped_bytes = 0;           ///< Experts that stay in the model's file.
  std::size_t weight_bytes_per_pass = 0;  ///< What a pass over one row reads.
  std::size_t kv_bytes_per_token = 0;     ///< Keys and values of one position in all layers.
  /// Keys and values of one sequence of max_positions; in layers that see a window, of the last
  /// ones.
  std::size_t kv_bytes_per_sequence = 0;
};
MemoryNeeds EstimateMemory(const ModelConfig& config, const TensorMap& tensors,
                           const Backend& backend, ExpertsPlace experts = ExpertsPlace::kMemory);

}  // namespace foretoken
