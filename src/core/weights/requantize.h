#pragma once

#include <cstddef>
#include <vector>

#include "core/tensor/tensor_view.h"
#include "core/weights/checkpoint.h"
#include "core/weights/weight_type.h"

namespace foretoken {

/// Makes a checkpoint one whose tensors are of this type: each is converted when it is read, so
/// that no more than one lies in memory. Tensors that are in their format already stay as they are.
/// Everything else about the checkpoint stays; its fingerprint is another.
Checkpoint Requantize(Checkpoint checkpoint, const WeightType& type, const MixBasis& model);

/// The bytes of a tensor in another format, which it fits, made by all cores. The same bytes by
/// however many.
std::vector<std::byte> Converted(const TensorView& tensor, WeightFormat format);

}  // namespace foretoken
