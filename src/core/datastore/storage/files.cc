#include "core/datastore/storage/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/files/private_files.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

Error Failed(const fs::path& path, std::string_view what, int reason) {
  return Unavailable("{}: cannot be {}: {}", path.string(), what, std::strerror(reason));
}

class PosixFile : public WritableFile {
 public:
  PosixFile(fs::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  ~PosixFile() override { close(descriptor_); }

  Status Append(std::span<const std::byte> bytes) override {
    constexpr std::size_t kMost = std::size_t{1} << 30;  // Linux writes no more than 2 GB at once.
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), std::min(bytes.size(), kMost));
      if (written < 0) {
        if (errno == EINTR) continue;
        return Failed(path_, "written", errno);
      }
      bytes = bytes.subspan(written);
    }
    return {};
  }
  Status Sync() override {
    if (fdatasync(descriptor_) != 0) return Failed(path_, "synced", errno);
    return {};
  }

 private:
  fs::path path_;
  int descriptor_;
};

class PosixFiles : public FileSystem {
 public:
  Result<std::unique_ptr<WritableFile>> Create(const fs::path& path) override {
    return Open(path, O_CREAT | O_TRUNC);
  }
  Result<std::unique_ptr<WritableFile>> OpenToAppend(const fs::path& path) override {
    return Open(path, O_APPEND);
  }
  Status CreateDirectories(const fs::path& path) override { return MakePrivateFolders(path); }
  Status Rename(const fs::path& from, const fs::path& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) return Failed(from, "renamed", errno);
    return {};
  }
  Status Remove(const fs::path& path) override {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return Failed(path, "removed", errno);
    return {};
  }
  Status Truncate(const fs::path& path, std::uint64_t bytes) override {
    if (truncate(path.c_str(), static_cast<off_t>(bytes)) != 0) {
      return Failed(path, "truncated", errno);
    }
    return {};
  }
  Status SyncDirectory(const fs::path& path) override {
    const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return Failed(path, "opened", errno);
    const int failed = fsync(descriptor) != 0 ? errno : 0;
    close(descriptor);
    if (failed != 0) return Failed(path, "synced", failed);
    return {};
  }

 private:
  static Result<std::unique_ptr<WritableFile>> Open(const fs::path& path, int flags) {
    const int descriptor =
        open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, kPrivateFile);
    if (descriptor < 0) return Failed(path, "opened for writing", errno);
    return std::unique_ptr<WritableFile>(std::make_unique<PosixFile>(path, descriptor));
  }
};

}  // namespace

std::shared_ptr<FileSystem> MakePosixFiles() { return std::make_shared<PosixFiles>(); }

Status PublishFile(FileSystem* files, const fs::path& path,
                   const std::function<Status(WritableFile*)>& write) {
  fs::path temporary = path;
  temporary += kTemporarySuffix;
  {
    FT_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files->Create(temporary));
    FT_RETURN_IF_ERROR(write(file.get()));
    FT_RETURN_IF_ERROR(file->Sync());
  }
  FT_RETURN_IF_ERROR(files->Rename(temporary, path));
  return files->SyncDirectory(path.parent_path());
}

Result<std::unique_ptr<DirectoryLock>> DirectoryLock::Take(const fs::path& directory) {
  const fs::path path = Path(directory);
  const int descriptor =
      open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kPrivateFile);
  if (descriptor < 0) return Failed(path, "opened", errno);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    close(descriptor);
    if (reason != EWOULDBLOCK) return Failed(path, "locked", reason);
    return Unavailable(
        "{}: another process is writing to this datastore; end it first, or read only",
        directory.string());
  }
  return std::unique_ptr<DirectoryLock>(new DirectoryLock(descriptor));
}

DirectoryLock::~DirectoryLock() { close(descriptor_); }

}  // namespace foretoken
