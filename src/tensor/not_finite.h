#pragma once

#include <cstdint>

#include "tensor/tensor_view.h"

namespace foretoken {

/// The place of the first element that is infinite or NaN, of a quantised tensor that where its
/// block begins; -1: all are finite.
std::int64_t FindNotFinite(const TensorView& view);

}  // namespace foretoken
