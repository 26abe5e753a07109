#pragma once

#include "core/tensor/weight_block.h"

namespace foretoken {

/// The integers of a block of IQ4_NL or MXFP4, formats of 32 elements and one scale whose codes
/// stand for the values of a table, that come near to `values`, all finite: scales are tried for
/// the least square error.
WeightBlock SearchTableBlock(WeightFormat format, const float* values);

}  // namespace foretoken
