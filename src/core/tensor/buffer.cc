#include "core/tensor/buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/exhaustion.h"

namespace foretoken {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kMapFrom = std::size_t{1} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

constexpr std::size_t RoundUp(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

// Maps `bytes` (a multiple of kHugePage) at a multiple of kHugePage: maps too much, then gives the
// ends back.
std::byte* MapAligned(std::size_t bytes) {
  void* const raw =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) throw OutOfMemory(bytes);
  auto* const begin = static_cast<std::byte*>(raw);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t head = RoundUp(address, kHugePage) - address;
  if (head != 0) munmap(begin, head);
  munmap(begin + head + bytes, kHugePage - head);
  madvise(begin + head, bytes, MADV_HUGEPAGE);  // Refused where the system has none: only slower.
  return begin + head;
}

}  // namespace

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes >= kMapFrom) {
    if (bytes > SIZE_MAX / 2) throw OutOfMemory(bytes);
    mapped_bytes_ = RoundUp(bytes, kHugePage);
    data_ = MapAligned(mapped_bytes_);
    return;
  }
  const std::size_t rounded = RoundUp(bytes, kCacheLine);
  data_ = static_cast<std::byte*>(std::aligned_alloc(kCacheLine, rounded));
  if (data_ == nullptr) throw OutOfMemory(rounded);
  std::memset(data_, 0, rounded);
}

Buffer::~Buffer() {
  if (mapped_bytes_ != 0) {
    munmap(data_, mapped_bytes_);
  } else {
    std::free(data_);
  }
}

}  // namespace foretoken
