#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "base/exhaustion.h"

namespace foretoken {

/// An array for hundreds of millions of trivially copyable elements. It grows by remapping its
/// pages, so that growing copies nothing and needs no second array; large ones lie on huge pages
/// where the system has them. New elements are zero.
template <typename T>
class LargeArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  LargeArray() = default;
  ~LargeArray() { Release(); }
  LargeArray(LargeArray&& other) noexcept { *this = std::move(other); }
  LargeArray& operator=(LargeArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  std::span<const T> span() const { return {data_, size_}; }

  /// Throws OutOfMemory.
  void Resize(std::size_t size) {
    if (size > mapped_ / sizeof(T)) Map(size);
    if (size < size_) std::memset(data_ + size, 0, (size_ - size) * sizeof(T));
    size_ = size;
  }
  void PushBack(T value) {
    if (size_ == mapped_ / sizeof(T)) Map(size_ + 1);
    data_[size_++] = value;
  }

 private:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  // Doubles small mappings and adds a sixteenth to large ones; what is not touched takes no memory.
  void Map(std::size_t size) {
    std::size_t bytes = size * sizeof(T);
    bytes += bytes < 16 * kHugePage ? bytes : bytes / 16;
    const std::size_t unit = bytes < 4 * kHugePage ? kPage : kHugePage;
    bytes = (bytes + unit - 1) / unit * unit;
    void* memory = mapped_ == 0 ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                : mremap(data_, mapped_, bytes, MREMAP_MAYMOVE);
    if (memory == MAP_FAILED) throw OutOfMemory(bytes);
    if (unit == kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);
    data_ = static_cast<T*>(memory);
    mapped_ = bytes;
  }
  void Release() {
    if (mapped_ != 0) munmap(data_, mapped_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;  // Bytes.
};

}  // namespace foretoken
