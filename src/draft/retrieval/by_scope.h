#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>

namespace foretoken {

/// What is remembered of ended sequences, a T for each scope (DraftContext::scope), of at most
/// kMaxScopes: a further one takes the place of that to which nothing was added for longest. Not
/// thread-safe.
template <typename T>
class ByScope {
 public:
  static constexpr std::size_t kMaxScopes = 8;

  /// Of a scope; null where nothing was added.
  const T* Find(std::uint64_t scope) const {
    const auto found = std::ranges::find(entries_, scope, &Entry::scope);
    return found != entries_.end() ? &found->value : nullptr;
  }

  /// The same to add to.
  T& Add(std::uint64_t scope) {
    const auto found = std::ranges::find(entries_, scope, &Entry::scope);
    if (found != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, found);
    } else {
      if (entries_.size() == kMaxScopes) entries_.pop_back();
      entries_.emplace_front().scope = scope;
    }
    return entries_.front().value;
  }

 private:
  struct Entry {
    std::uint64_t scope = 0;
    T value;
  };
  std::list<Entry> entries_;  // That to which something was added last first.
};

}  // namespace foretoken
