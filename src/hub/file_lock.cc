#include "hub/file_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

namespace foretoken {

namespace fs = std::filesystem;

Result<FileLock> FileLock::Try(const fs::path& path, Kind kind) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  FileLock lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0664));
  if (lock.descriptor_ < 0) {
    return InvalidInput(fmt::format("cannot write '{}': {}", path.string(), std::strerror(errno)));
  }
  const int operation = kind == Kind::kShared ? LOCK_SH : LOCK_EX;
  if (flock(lock.descriptor_, operation | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK || errno == EINTR) {
    return Error{ErrorCode::kUnavailable, fmt::format("another process holds '{}'", path.string())};
  }
  return InvalidInput(fmt::format("cannot lock '{}': {}", path.string(), std::strerror(errno)));
}

Result<FileLock> FileLock::Acquire(const fs::path& path, Kind kind,
                                   const std::function<bool()>& cancelled,
                                   const std::function<void()>& waiting) {
  constexpr std::chrono::milliseconds kBetweenTries(100);
  for (bool first = true;; first = false) {
    Result<FileLock> lock = Try(path, kind);
    if (lock.ok() || lock.error().code != ErrorCode::kUnavailable) return lock;
    if (cancelled()) return Error{ErrorCode::kCancelled, "interrupted"};
    if (first && waiting) waiting();
    std::this_thread::sleep_for(kBetweenTries);
  }
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace foretoken
