#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "base/files/mapping_watch.h"
#include "base/result.h"

namespace foretoken {

/// A whole regular file, mapped read-only. Immutable and thread-safe.
class MappedFile {
 public:
  /// A file that is not there is kInvalidInput. `when` is for a file that others truncate later.
  static Result<std::shared_ptr<const MappedFile>> Open(const std::filesystem::path& path,
                                                        WhenLost when = WhenLost::kEnd);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Gives back the memory of the pages that lie wholly in `part` of it: whoever reads them again
  /// reads them from the file.
  void Release(std::span<const std::byte> part) const;
  /// Whether some of it was lost and reads as zeros, with WhenLost::kZeros; lives as long as this.
  /// Null: it is empty.
  const std::atomic<bool>* lost() const { return watch_ ? &watch_->lost() : nullptr; }

 private:
  MappedFile() = default;
  std::span<const std::byte> bytes_;
  std::optional<MappingWatch> watch_;
};

}  // namespace foretoken
