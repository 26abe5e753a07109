#pragma once

// Counts the heap allocations of a test program: include it in exactly one of its files, before
// the code whose allocations count runs. Replaces the global operators new and delete.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace foretoken {

/// Allocations by every thread of the program so far.
inline std::atomic<long> allocations{0};

[[gnu::noinline]] inline void* CountedAllocation(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory =
      alignment > alignof(std::max_align_t)
          ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
          : std::malloc(bytes);
  if (memory == nullptr) std::abort();
  return memory;
}

// Out of line, or gcc takes malloc and delete for mismatched.
[[gnu::noinline]] inline void CountedFree(void* memory) noexcept { std::free(memory); }

}  // namespace foretoken

void* operator new(std::size_t bytes) { return foretoken::CountedAllocation(bytes, 1); }
void* operator new[](std::size_t bytes) { return foretoken::CountedAllocation(bytes, 1); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return foretoken::CountedAllocation(bytes, 1);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return foretoken::CountedAllocation(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return foretoken::CountedAllocation(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return foretoken::CountedAllocation(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { foretoken::CountedFree(memory); }
void operator delete[](void* memory) noexcept { foretoken::CountedFree(memory); }
void operator delete(void* memory, std::size_t) noexcept { foretoken::CountedFree(memory); }
void operator delete[](void* memory, std::size_t) noexcept { foretoken::CountedFree(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { foretoken::CountedFree(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { foretoken::CountedFree(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  foretoken::CountedFree(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  foretoken::CountedFree(memory);
}
