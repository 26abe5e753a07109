#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/result.h"
#include "core/tensor/tensor_map.h"
#include "core/tensor/weight_format.h"
#include "core/weights/gguf/gguf_metadata.h"
#include "core/weights/other_tensor.h"

namespace foretoken {

/// How tensors' data are aligned in a file that does not say it.
inline constexpr std::uint32_t kUsualGgufAlignment = 32;

/// A format's number in files.
std::uint32_t GgufTensorType(WeightFormat format);

/// What a GGUF file holds. Borrows the file's bytes.
struct GgufContents {
  GgufMetadata metadata;
  TensorMap tensors;
  OtherTensorMap others;  ///< Tensors of integers and of F64, which no weight has.
};

/// Validates a whole GGUF file (version 2 or 3, little-endian) in memory and returns views into it:
/// every count, string and array lies inside the file, keys and names are unique, every tensor has
/// a supported format or is of integers or F64, one to four dimensions, rows of whole blocks, and
/// aligned data that lies inside the file and overlaps no other. `where` names the file in errors.
Result<GgufContents> ParseGguf(std::span<const std::byte> file, std::string_view where);

/// A model in a GGUF file, or in all parts of a split one, mapped read-only. Movable; views live as
/// long as its parts do.
class GgufFile {
 public:
  /// Opens a file, and with the first part of a split model ("NAME-00001-of-000NN.gguf") the others
  /// beside it.
  static Result<GgufFile> Open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  /// The metadata of the first part.
  const GgufMetadata& metadata() const { return metadata_; }
  const TensorMap& tensors() const { return tensors_; }
  const OtherTensorMap& others() const { return others_; }
  const std::vector<std::shared_ptr<const MappedFile>>& parts() const { return parts_; }

 private:
  Status OpenOtherParts();
  Status AddPart(const std::filesystem::path& path, std::int64_t number, std::int64_t count);

  std::filesystem::path path_;
  std::vector<std::shared_ptr<const MappedFile>> parts_;
  GgufMetadata metadata_;
  TensorMap tensors_;
  OtherTensorMap others_;
};

}  // namespace foretoken
