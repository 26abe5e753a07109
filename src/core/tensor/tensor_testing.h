#pragma once

#include "core/tensor/tensor_view.h"

namespace foretoken {

/// For tests: element `index` of `view` as a float.
inline float LoadElement(const TensorView& view, std::int64_t index) {
  float value = 0;
  LoadElements(view, index, 1, &value);
  return value;
}

}  // namespace foretoken
