#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "base/result.h"

namespace foretoken {

/// An advisory lock on a file (flock), which is made where it is missing and stays: what the Hub's
/// own tools hold while they fetch what it is named after. Freed when this goes or its process
/// ends. Where the file system has no locks everybody has it.
class FileLock {
 public:
  enum class Kind { kShared, kExclusive };

  /// Waits until nobody else has it; kCancelled as soon as `cancelled` says so. `waiting` (may be
  /// null) is told once where it has to wait.
  static Result<FileLock> Acquire(const std::filesystem::path& path, Kind kind,
                                  const std::function<bool()>& cancelled,
                                  const std::function<void()>& waiting);
  /// Nothing where somebody has it.
  static Result<std::optional<FileLock>> Try(const std::filesystem::path& path, Kind kind);

  ~FileLock();
  FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace foretoken
