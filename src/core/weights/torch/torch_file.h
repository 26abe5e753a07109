#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/result.h"
#include "core/weights/file_tensors.h"

namespace foretoken {

/// Validates a whole file in memory that torch.save (1.6 or later) has written of a dictionary of
/// tensors, and returns views into it. Tensors may share a storage and lie anywhere in it, but
/// contiguously. Nothing in the file is run (unpickle.h). `where` names the file in errors.
Result<FileTensors> ParseTorchFile(std::span<const std::byte> file, std::string_view where);

}  // namespace foretoken
