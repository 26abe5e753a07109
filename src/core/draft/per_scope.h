#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <utility>

namespace foretoken {

/// What a drafter learns from texts, kept apart by their scopes (DraftContext::scope). `kMost`
/// scopes at once: a further one takes the place of that which was not used for longest. A `Value`
/// has Clear(). References hold until the next Use. Not thread-safe.
template <typename Value>
class PerScope {
 public:
  static constexpr std::size_t kMost = 8;

  /// `make` gives an empty one.
  explicit PerScope(std::function<Value()> make) : make_(std::move(make)) {}

  Value& Use(std::uint64_t scope) {
    auto found = std::ranges::find(kept_, scope, &Kept::scope);
    if (found == kept_.end() && kept_.size() < kMost) {
      kept_.push_front({scope, make_()});
      found = kept_.begin();
    } else if (found == kept_.end()) {
      found = std::prev(kept_.end());
      found->value.Clear();
      found->scope = scope;
    }
    kept_.splice(kept_.begin(), kept_, found);
    return found->value;
  }

 private:
  struct Kept {
    std::uint64_t scope = 0;
    Value value;
  };

  std::function<Value()> make_;
  std::list<Kept> kept_;  // The last used first.
};

}  // namespace foretoken
