#pragma once

#include <functional>
#include <map>
#include <utility>

namespace foretoken {

/// A clock that jumps from event to event. Events of the same time run in the order in which they
/// were scheduled.
class EventQueue {
 public:
  double now() const { return now_; }

  /// Runs `action` in `delay` (>= 0) from now.
  void After(double delay, std::function<void()> action) {
    events_.emplace(now_ + delay, std::move(action));
  }

  /// Runs the next event; false where there is none.
  bool RunNext() {
    if (events_.empty()) return false;
    const auto event = events_.extract(events_.begin());
    now_ = event.key();
    event.mapped()();
    return true;
  }

 private:
  std::multimap<double, std::function<void()>> events_;  // By time.
  double now_ = 0;
};

}  // namespace foretoken
