#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>

namespace foretoken {

/// A tensor of a folder that is none of weights: of integers, say.
struct OtherTensor {
  std::string dtype;
  std::span<const std::byte> data;
};
using OtherTensorMap = std::map<std::string, OtherTensor, std::less<>>;

}  // namespace foretoken
