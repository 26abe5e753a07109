#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/threads/cores.h"

namespace foretoken::server {

/// Engines that share cores compute one at a time, in the order in which they come: threads of two
/// at once would wait for each other in every operation. Those of other cores are not held up.
class CoreTurns {
 public:
  /// Waits until nobody who came earlier has or wants one of `cores`, which stay where they are
  /// until Give.
  void Take(const CoreSet& cores);
  void Give(const CoreSet& cores);

 private:
  bool IsNext(const CoreSet& cores) const;

  std::mutex mutex_;
  std::condition_variable given_;
  std::vector<const CoreSet*> line_;  // Who has a turn or waits for one, as they came.
};

/// The turns of one engine, to be locked while it computes.
class CoreTurn {
 public:
  CoreTurn(CoreTurns* turns, const CoreSet& cores) : turns_(turns), cores_(cores) {}

  void lock() { turns_->Take(cores_); }
  void unlock() { turns_->Give(cores_); }

 private:
  CoreTurns* const turns_;
  const CoreSet& cores_;
};

}  // namespace foretoken::server
