#pragma once

#include <cstddef>
#include <vector>

#include "core/tensor/tensor_view.h"

namespace foretoken {

/// The order in which outputs of experts are kept: as they are, or in turns, those of the gate at
/// even places and those that it is multiplied with at odd ones. What is made has the gate's first.
enum class Outputs { kInOrder, kInTurns };

/// Matrices [experts, inputs, outputs] of floats as [experts, outputs, inputs].
std::vector<std::byte> Transposed(const TensorView& stacked, Outputs outputs);

/// Biases [experts, outputs] or matrices [experts, outputs, inputs] in any format, whose outputs
/// are in turns, in order.
std::vector<std::byte> InOrder(const TensorView& stacked);

}  // namespace foretoken
