#include "text/hub/cache/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include "text/hub/cache/own_files.h"

namespace foretoken {

namespace fs = std::filesystem;

Result<std::optional<FileLock>> FileLock::Try(const fs::path& path, Kind kind) {
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW;
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  FileLock lock(open(path.c_str(), O_RDWR | O_CREAT | kFlags, 0664));
  if (lock.descriptor_ < 0) {
    // A lock of another account, or in a cache that is only read, can be locked all the same.
    const int reason = errno;
    lock.descriptor_ = open(path.c_str(), O_RDONLY | kFlags);
    if (lock.descriptor_ < 0) return CannotWrite(path, reason);
  }
  const int operation = kind == Kind::kShared ? LOCK_SH : LOCK_EX;
  if (flock(lock.descriptor_, operation | LOCK_NB) == 0) return std::optional(std::move(lock));
  if (errno == EWOULDBLOCK || errno == EINTR) return std::optional<FileLock>();
  // A file system without locks: nobody can be kept out, and nobody keeps this process out.
  if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP) {
    return std::optional(std::move(lock));
  }
  return Invalid("cannot lock '{}': {}", path.string(), std::strerror(errno));
}

Result<FileLock> FileLock::Acquire(const fs::path& path, Kind kind,
                                   const std::function<bool()>& cancelled,
                                   const std::function<void()>& waiting) {
  constexpr std::chrono::milliseconds kBetweenTries(100);
  for (bool first = true;; first = false) {
    FT_ASSIGN_OR_RETURN(std::optional<FileLock> lock, Try(path, kind));
    if (lock) return std::move(*lock);
    if (cancelled()) return Error{ErrorCode::kCancelled, "interrupted"};
    if (first && waiting) waiting();
    std::this_thread::sleep_for(kBetweenTries);
  }
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace foretoken
