#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"

namespace foretoken {

/// A file that is being written, closed when destroyed. Not thread-safe.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Status Append(std::span<const std::byte> bytes) = 0;
  /// Returns when what was appended would survive a loss of power.
  virtual Status Sync() = 0;
};

/// Everything that changes a datastore's directory goes through here, so that tests can end the
/// process at any step. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// Creates an empty file, in place of one that is there.
  virtual Result<std::unique_ptr<WritableFile>> Create(const std::filesystem::path& path) = 0;
  virtual Result<std::unique_ptr<WritableFile>> OpenToAppend(const std::filesystem::path& path) = 0;
  virtual Status CreateDirectories(const std::filesystem::path& path) = 0;
  /// Replaces `to`, if it is there, in one step.
  virtual Status Rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual Status Remove(const std::filesystem::path& path) = 0;
  virtual Status Truncate(const std::filesystem::path& path, std::uint64_t bytes) = 0;
  /// Makes creations, renames and removals in `path` survive a loss of power.
  virtual Status SyncDirectory(const std::filesystem::path& path) = 0;
};

/// The operating system's files.
std::shared_ptr<FileSystem> MakePosixFiles();

/// Writes `path` so that it has its old content (or is not there) or all of the new one, whatever
/// happens: under a temporary name, synced, renamed, the directory synced.
Status PublishFile(FileSystem* files, const std::filesystem::path& path,
                   const std::function<Status(WritableFile*)>& write);

/// What PublishFile appends to a name until the file is whole.
inline constexpr std::string_view kTemporarySuffix = ".tmp";

/// Keeps other processes from opening the same directory for writing, until destroyed.
class DirectoryLock {
 public:
  /// The file that is locked.
  static std::filesystem::path Path(const std::filesystem::path& directory) {
    return directory / "LOCK";
  }
  static Result<std::unique_ptr<DirectoryLock>> Take(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  explicit DirectoryLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace foretoken
