#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/tensor/tensor_view.h"

namespace foretoken {

/// The tensors of a file by name.
using TensorMap = std::map<std::string, TensorView, std::less<>>;

}  // namespace foretoken
