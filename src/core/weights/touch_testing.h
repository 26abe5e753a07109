#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/weights/file_tensors.h"

namespace foretoken {

// What a parser has accepted must be readable to its last byte: AddressSanitizer sees where it is
// not.

inline void TouchBytes(std::span<const std::byte> data) {
  for (const std::byte byte : data) [[maybe_unused]] const volatile std::byte read = byte;
}

inline void TouchTensors(const TensorMap& tensors) {
  std::vector<float> values;
  for (const auto& [name, view] : tensors) {
    values.resize(view.elements());
    LoadElements(view, 0, view.elements(), values.data());
  }
}

inline void TouchTensors(const OtherTensorMap& others) {
  for (const auto& [name, other] : others) TouchBytes(other.data);
}

}  // namespace foretoken
