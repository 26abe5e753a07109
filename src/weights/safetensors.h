#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/tensor_map.h"
#include "weights/other_tensor.h"

namespace foretoken {

/// A tensor of whole bytes (U8).
struct ByteTensor {
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};
using ByteTensorMap = std::map<std::string, ByteTensor, std::less<>>;

/// What a safetensors file holds, by name.
struct Safetensors {
  TensorMap tensors;      ///< Of floats.
  ByteTensorMap bytes;    ///< What these mean, their names say.
  OtherTensorMap others;  ///< Of dtypes that no weight has.
};

/// Validates a whole safetensors file in memory and returns views into it: the header lies inside
/// the file, is a JSON object and at most 100 MB; every tensor has a dtype of the format, its
/// byte range lies inside the data section, fits shape x dtype and overlaps no other. Data need not
/// be aligned. `where` names the file in errors.
Result<Safetensors> ParseSafetensors(std::span<const std::byte> file, std::string_view where);

/// A safetensors file mapped read-only, and views into it.
struct SafetensorsFile {
  std::shared_ptr<const MappedFile> file;
  Safetensors holds;

  static Result<SafetensorsFile> Open(const std::filesystem::path& path);
};

}  // namespace foretoken
