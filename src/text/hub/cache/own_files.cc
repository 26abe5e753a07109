#include "text/hub/cache/own_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <random>

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kRights = 0666;

bool IsOwn(int file) {
  struct stat status = {};
  return fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
         status.st_uid == geteuid();
}

bool IsForeignLink(const fs::path& path) {
  struct stat status = {};
  return lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode) && status.st_uid != 0 &&
         status.st_uid != geteuid();
}

}  // namespace

Error CannotWrite(const fs::path& path, int reason) {
  constexpr std::array kOfTheCache = {EACCES, EPERM, EROFS, ENOSPC, EDQUOT, EIO};
  const bool state = std::ranges::find(kOfTheCache, reason) != kOfTheCache.end();
  return {state ? ErrorCode::kUnavailable : ErrorCode::kInvalidInput,
          fmt::format("cannot write '{}': {}", path.string(), std::strerror(reason))};
}

Status CheckLinks(const fs::path& cache, const fs::path& path) {
  fs::path at = cache;
  for (const fs::path& part : path.lexically_relative(cache)) {
    at /= part;
    if (!IsForeignLink(at)) continue;
    return Invalid(
        "'{}' is a link that another account has made: what is fetched would lie elsewhere, so it "
        "must be removed first",
        at.string());
  }
  return {};
}

int OpenOwn(const fs::path& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int found = open(path.c_str(), kFlags, kRights);
  if (found >= 0 && IsOwn(found)) return found;
  if (found >= 0) close(found);
  if (found < 0 && errno != ELOOP && errno != EACCES && errno != ENXIO) return -1;
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return -1;
  return open(path.c_str(), kFlags | O_EXCL, kRights);
}

fs::path FreshName(const fs::path& folder) {
  std::random_device device;
  const auto number = std::uint64_t{device()} << 32 | device();
  return folder / fmt::format("foretoken-{:016x}.tmp", number);
}

Status WriteWhole(const fs::path& file, const fs::path& folder, std::string_view content) {
  const fs::path temporary = FreshName(folder);
  const int written =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kRights);
  if (written < 0) return CannotWrite(temporary, errno);
  const bool done = write(written, content.data(), content.size()) == std::ssize(content) &&
                    fsync(written) == 0 && rename(temporary.c_str(), file.c_str()) == 0;
  const int reason = errno;
  close(written);
  if (done) return {};
  unlink(temporary.c_str());
  return CannotWrite(file, reason);
}

}  // namespace foretoken
