#pragma once

#include <string_view>

#include "base/result.h"
#include "core/weights/checkpoint.h"

namespace foretoken {

/// Refuses an element of a tensor of the checkpoint that is infinite or NaN: `read` is what was
/// read of it, all or a part.
Status CheckFinite(const Checkpoint& checkpoint, std::string_view name, const TensorView& read);

}  // namespace foretoken
