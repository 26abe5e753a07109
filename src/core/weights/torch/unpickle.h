#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace foretoken {

/// A tensor as a pickle describes it: elements of a storage, which another member of the file is.
struct PickledTensor {
  std::string_view storage;  ///< Its name.
  std::string_view dtype;    ///< The storage's, as safetensors files call it.
  std::int64_t storage_elements = 0;
  std::int64_t offset = 0;  ///< In elements of the storage, as strides are.
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< As many.
};

/// The tensors of a pickled dictionary by its keys, in its order: what torch.save writes of a state
/// dictionary. A pickle is a program; nothing that it names is run here: whatever tensors do not
/// need is refused by its name. What is returned borrows `pickle`; `where` names it in errors.
Result<std::vector<std::pair<std::string_view, PickledTensor>>> UnpickleTensors(
    std::span<const std::byte> pickle, std::string_view where);

}  // namespace foretoken
