#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "base/check.h"

namespace foretoken {

/// A vector of at most `Capacity` trivially copyable elements, stored in place: for messages and
/// for the round's path, where nothing may allocate.
template <typename T, std::size_t Capacity>
class StaticVector {
 public:
  StaticVector() = default;
  StaticVector(std::initializer_list<T> items) {
    for (const T& item : items) push_back(item);
  }

  static constexpr std::size_t capacity() { return Capacity; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void clear() { size_ = 0; }
  void push_back(const T& value) {
    FT_CHECK(size_ < Capacity);
    items_[size_++] = value;
  }
  void resize(std::size_t size) {
    FT_CHECK(size <= Capacity);
    for (std::size_t i = size_; i < size; ++i) items_[i] = T{};
    size_ = size;
  }
  T& operator[](std::size_t i) { return items_[i]; }
  const T& operator[](std::size_t i) const { return items_[i]; }
  T& back() { return items_[size_ - 1]; }
  const T& back() const { return items_[size_ - 1]; }
  T* begin() { return items_.data(); }
  T* end() { return items_.data() + size_; }
  const T* begin() const { return items_.data(); }
  const T* end() const { return items_.data() + size_; }
  friend bool operator==(const StaticVector& a, const StaticVector& b) {
    return std::ranges::equal(a, b);
  }
  operator std::span<const T>() const { return {items_.data(), size_}; }  // NOLINT

 private:
  std::size_t size_ = 0;
  std::array<T, Capacity> items_{};
};

}  // namespace foretoken
