#include "base/files/mapped_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace foretoken {
namespace {

Error MappingFailed(const std::filesystem::path& path, std::string_view what, int reason) {
  return Error{reason == ENOENT ? ErrorCode::kInvalidInput : ErrorCode::kUnavailable,
               fmt::format("{}: cannot be {}: {}", path.string(), what, std::strerror(reason))};
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::filesystem::path& path,
                                                           WhenLost when) {
  // Not blocking: a pipe is refused below, not waited for.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return MappingFailed(path, "opened", errno);
  struct stat info = {};
  if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(descriptor);
    return InvalidInput(path.string() + ": is not a regular file");
  }
  std::shared_ptr<MappedFile> file(new MappedFile);
  if (const std::size_t bytes = info.st_size; bytes > 0) {
    void* mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapping == MAP_FAILED) {
      const int reason = errno;
      close(descriptor);
      return MappingFailed(path, "mapped", reason);
    }
    file->bytes_ = {static_cast<const std::byte*>(mapping), bytes};
    file->watch_.emplace(file->bytes_, when, path.string());
  }
  close(descriptor);
  return std::shared_ptr<const MappedFile>(std::move(file));
}

void MappedFile::Release(std::span<const std::byte> part) const {
  static const std::size_t page = sysconf(_SC_PAGESIZE);
  const std::size_t begin = part.data() - bytes_.data();
  const std::size_t first = (begin + page - 1) / page * page;
  const std::size_t end = (begin + part.size()) / page * page;
  if (first >= end) return;
  // Where it cannot be done, the pages stay.
  madvise(const_cast<std::byte*>(bytes_.data()) + first, end - first, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  watch_.reset();
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace foretoken
