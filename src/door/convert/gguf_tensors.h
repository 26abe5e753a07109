#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// A tensor of a GGUF file, made of tensors of a checkpoint.
struct GgufTensor {
  /// Files have gates and what they are multiplied with apart, which some folders keep as one:
  /// which half of the outputs of each matrix it is.
  enum class Part { kAll, kFirstHalf, kSecondHalf };
  std::string name;
  std::vector<std::int64_t> shape;
  WeightFormat format = WeightFormat::kF32;
  std::vector<std::string> sources;  ///< One behind the other, as experts are stacked.
  Part part = Part::kAll;
};

/// All tensors of a model under the names that GGUF files have for them. One that has no name there
/// is refused.
Result<std::vector<GgufTensor>> ListGgufTensors(const Checkpoint& checkpoint,
                                                const ModelConfig& config);

/// What `tensor` has of its source `name`, in the order of GGUF files.
std::vector<std::byte> BytesOfSource(const Checkpoint& checkpoint, const ModelConfig& config,
                                     const GgufTensor& tensor, const std::string& name);

}  // namespace foretoken
