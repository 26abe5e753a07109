#include "transport/ring_channel.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace foretoken {
namespace {

constexpr std::size_t kBytes = 2 * sizeof(RingMemory);

Error SystemError(const char* what) {
  return Error{ErrorCode::kUnavailable, fmt::format("cannot {} for the speculator's channel: {}",
                                                    what, std::strerror(errno))};
}

Result<RingMemory*> Map(int fd) {
  void* address = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return SystemError("map shared memory");
  return static_cast<RingMemory*>(address);
}

}  // namespace

Result<std::unique_ptr<ChannelMemory>> ChannelMemory::Create() {
  // Without MFD_CLOEXEC: a speculator process inherits the descriptor.
  const int fd = memfd_create("foretoken-channel", 0);
  if (fd < 0) return SystemError("create shared memory");
  if (ftruncate(fd, kBytes) != 0) {
    close(fd);
    return SystemError("size shared memory");
  }
  auto rings = Map(fd);
  if (!rings.ok()) {
    close(fd);
    return rings.error();
  }
  return std::unique_ptr<ChannelMemory>(new ChannelMemory(*rings, fd));
}

Result<std::unique_ptr<ChannelMemory>> ChannelMemory::Attach(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return SystemError("inspect shared memory");
  if (static_cast<std::size_t>(info.st_size) != kBytes) {
    return InvalidInput(fmt::format(
        "file descriptor {} holds {} bytes, not the {} of a speculator's channel: is the engine "
        "of the same version?",
        fd, info.st_size, kBytes));
  }
  FT_ASSIGN_OR_RETURN(RingMemory * rings, Map(fd));
  return std::unique_ptr<ChannelMemory>(new ChannelMemory(rings, -1));
}

ChannelMemory::~ChannelMemory() {
  munmap(rings_, kBytes);
  if (fd_ >= 0) close(fd_);
}

}  // namespace foretoken
