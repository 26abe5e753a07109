#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace foretoken {

/// A clock that jumps from event to event. Events of the same time run in the order in which they
/// were scheduled.
class EventQueue {
 public:
  double now() const { return now_; }

  /// Runs `action` in `delay` (>= 0) from now.
  void After(double delay, std::function<void()> action) {
    events_.push_back({now_ + delay, next_order_++, std::move(action)});
    std::ranges::push_heap(events_, Later);
  }

  /// Runs the next event; false where there is none.
  bool RunNext() {
    if (events_.empty()) return false;
    std::ranges::pop_heap(events_, Later);
    const Event event = std::move(events_.back());
    events_.pop_back();
    now_ = event.time;
    event.action();
    return true;
  }

 private:
  struct Event {
    double time;
    std::int64_t order;
    std::function<void()> action;
  };
  static bool Later(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }

  std::vector<Event> events_;  // A heap, the next one first.
  double now_ = 0;
  std::int64_t next_order_ = 0;
};

}  // namespace foretoken
