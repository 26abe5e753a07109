#pragma once

#include <cstddef>
#include <utility>

namespace foretoken {

/// Owned, zero-initialised host memory aligned to 64 bytes; from 1 MiB on it is mapped and backed
/// by 2 MB pages where the system grants them. Moves, does not copy.
class Buffer {
 public:
  Buffer() = default;
  /// Throws OutOfMemory.
  explicit Buffer(std::size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept { Swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// Has at least so many bytes afterwards; where it had fewer, what it held is lost.
  void Grow(std::size_t bytes) {
    if (bytes_ < bytes) *this = Buffer(bytes);
  }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  void Swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
  }

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t mapped_bytes_ = 0;  // 0: from the aligned heap.
};

}  // namespace foretoken
