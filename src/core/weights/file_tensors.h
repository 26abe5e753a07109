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

#include "base/files/mapped_file.h"
#include "base/result.h"
#include "core/tensor/tensor_map.h"
#include "core/weights/other_tensor.h"

namespace foretoken {

/// A tensor of whole bytes (U8).
struct ByteTensor {
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};
using ByteTensorMap = std::map<std::string, ByteTensor, std::less<>>;

/// What a file of a folder holds, by name: views into it.
struct FileTensors {
  TensorMap tensors;      ///< Tensors of floats.
  ByteTensorMap bytes;    ///< What these mean, their names say.
  OtherTensorMap others;  ///< Tensors of dtypes that no weight has.

  /// Adds a tensor of a dtype that DTypeBytes knows. False: there is one of that name already.
  bool Add(std::string_view name, std::string_view dtype, std::vector<std::int64_t> shape,
           std::span<const std::byte> data);
  /// Moves the tensor of that name to `to`; false where there is none, or `to` has one.
  bool Move(std::string_view name, FileTensors* to);
};

/// The bytes of an element of a dtype, by its name in safetensors files; 0: there is none.
std::size_t DTypeBytes(std::string_view dtype);

/// A file mapped read-only, and views into it.
struct TensorFile {
  std::shared_ptr<const MappedFile> file;
  FileTensors holds;

  /// What validates a whole file and makes views of it; `where` names the file in errors.
  using Parse = Result<FileTensors> (*)(std::span<const std::byte> file, std::string_view where);
  static Result<TensorFile> Open(const std::filesystem::path& path, Parse parse);
};

}  // namespace foretoken
