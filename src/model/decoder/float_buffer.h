#pragma once

#include <cstddef>

#include "tensor/buffer.h"

namespace foretoken {

/// Makes room for `floats` numbers; what is there is lost where it grows.
inline void GrowFloats(Buffer& buffer, std::size_t floats) {
  if (buffer.bytes() < floats * sizeof(float)) buffer = Buffer(floats * sizeof(float));
}

}  // namespace foretoken
