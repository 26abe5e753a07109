#pragma once

#include <cstdint>

#include "core/tensor/tensor_view.h"

namespace foretoken {

/// The place of the first element from `begin` to before `end` that is infinite or NaN, of a
/// quantised tensor that where its block begins, as `begin` and `end` do; -1: all are finite.
std::int64_t FindNotFinite(const TensorView& view, std::int64_t begin, std::int64_t end);
/// The same of all of them.
inline std::int64_t FindNotFinite(const TensorView& view) {
  return FindNotFinite(view, 0, view.elements());
}

}  // namespace foretoken
