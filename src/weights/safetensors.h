#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/tensor_map.h"

namespace foretoken {

/// Validates a whole safetensors file in memory and returns views into it: the header lies inside
/// the file, is a JSON object and at most 100 MB; every tensor is F32, F16 or BF16, its byte range
/// lies inside the data section, fits shape x dtype and overlaps no other. Data need not be
/// aligned. `where` names the file in errors.
Result<TensorMap> ParseSafetensors(std::span<const std::byte> file, std::string_view where);

/// A safetensors file mapped read-only, and views into it.
struct SafetensorsFile {
  std::shared_ptr<const MappedFile> file;
  TensorMap tensors;

  static Result<SafetensorsFile> Open(const std::filesystem::path& path);
};

}  // namespace foretoken
