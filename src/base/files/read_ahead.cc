#include "base/files/read_ahead.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace foretoken {

void ReadAhead(std::span<const std::byte> mapped) {
  static const std::size_t page = sysconf(_SC_PAGESIZE);
  const std::size_t before = reinterpret_cast<std::uintptr_t>(mapped.data()) % page;
  madvise(const_cast<std::byte*>(mapped.data()) - before, mapped.size() + before, MADV_WILLNEED);
}

}  // namespace foretoken
