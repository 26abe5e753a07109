#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace foretoken {

/// Numbers spans of T by their content: equal spans get equal ids, from 0 on. T has no padding.
template <typename T>
class SpanInterner {
 public:
  SpanInterner() { Clear(); }

  int size() const { return std::ssize(begins_) - 1; }
  /// Bytes held, about.
  std::size_t bytes() const { return items_.size() * sizeof(T) + begins_.size() * 12; }

  /// Valid until the next Intern or Clear.
  std::span<const T> operator[](int id) const {
    return std::span(items_).subspan(begins_[id], begins_[id + 1] - begins_[id]);
  }

  /// The id of `items`; `*added` tells whether it is new.
  int Intern(std::span<const T> items, bool* added = nullptr) {
    if (2 * begins_.size() >= table_.size()) Grow();
    std::size_t slot = Hash(items) & (table_.size() - 1);
    for (; table_[slot] >= 0; slot = (slot + 1) & (table_.size() - 1)) {
      if (std::ranges::equal((*this)[table_[slot]], items)) {
        if (added != nullptr) *added = false;
        return table_[slot];
      }
    }
    items_.insert(items_.end(), items.begin(), items.end());
    begins_.push_back(items_.size());
    if (added != nullptr) *added = true;
    return table_[slot] = size() - 1;
  }

  void Clear() {
    items_.clear();
    begins_.assign(1, 0);
    table_.assign(64, -1);
  }

 private:
  static std::size_t Hash(std::span<const T> items) {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(items.data()), items.size_bytes()});
  }

  void Grow() {
    table_.assign(2 * table_.size(), -1);
    for (int id = 0; id < size(); ++id) {
      std::size_t slot = Hash((*this)[id]) & (table_.size() - 1);
      while (table_[slot] >= 0) slot = (slot + 1) & (table_.size() - 1);
      table_[slot] = id;
    }
  }

  std::vector<T> items_;
  std::vector<std::size_t> begins_;
  std::vector<int> table_;  // Open addressing; -1 is free. A power of two.
};

}  // namespace foretoken
