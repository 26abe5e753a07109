#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/result.h"
#include "core/weights/file_tensors.h"

namespace foretoken {

/// Validates a whole safetensors file in memory and returns views into it: the header lies inside
/// the file, is a JSON object and at most 100 MB; every tensor has a dtype of the format, its
/// byte range lies inside the data section, fits shape x dtype and overlaps no other. Data need not
/// be aligned. `where` names the file in errors.
Result<FileTensors> ParseSafetensors(std::span<const std::byte> file, std::string_view where);

}  // namespace foretoken
