#pragma once

#include <filesystem>
#include <map>

#include "base/result.h"
#include "core/weights/checkpoint.h"
#include "core/weights/weight_type.h"
#include "foretoken/model.h"

namespace foretoken {

/// What was written.
struct WrittenGguf {
  std::size_t bytes = 0;                ///< The size of the file.
  std::map<WeightFormat, int> tensors;  ///< How many there are of each format.
  int smaller_blocks = 0;               ///< Whose width allowed no block of 256.
};

/// Writes a model as a GGUF file that llama.cpp reads, with weights of this type, tensor by tensor;
/// the file appears at `out` when it is whole. Refuses weights that are infinite or no numbers.
/// `progress` is told how many bytes of tensors are written.
Result<WrittenGguf> WriteGguf(Checkpoint checkpoint, const WeightType& type,
                              const std::filesystem::path& out, const LoadProgress& progress = {});

}  // namespace foretoken
