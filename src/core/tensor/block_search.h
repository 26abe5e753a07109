#pragma once

#include "core/tensor/weight_block.h"

namespace foretoken {

/// The integers of a block of a K format (Q2_K to Q6_K) that come near to `values`, all finite: the
/// scales of groups are searched for the least square error, then the block's own, into which the
/// groups' are rounded.
WeightBlock SearchBlock(WeightFormat format, const float* values);

}  // namespace foretoken
