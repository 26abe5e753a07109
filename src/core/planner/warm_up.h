#pragma once

#include <algorithm>

#include "core/planner/observations.h"

namespace foretoken {

/// The warm-up after a change of mode: tells whether rounds measure the speed of the mode in use
/// yet. While the draft reads the contexts they do not.
class WarmUp {
 public:
  /// Sequences change to another mode.
  void Restart() { rounds_ = -kReadingRounds; }

  /// A round; true if the warm-up is over, so that it counts.
  bool Observe(const PassObservation& pass) {
    if (HasBegun(pass)) rounds_ = std::max(rounds_, 0);
    return ++rounds_ > kWarmUpRounds;
  }

 private:
  // After a change of mode the draft first reads the contexts: so many rounds at most.
  static constexpr int kReadingRounds = 64;
  // Until two rounds from the first that verifies something: the tenth, where 16 contexts of 128
  // are read.
  static constexpr int kWarmUpRounds = 2;

  // Whether the draft has read the contexts, as far as the proposals tell: of most sequences, or of
  // the one that tries a mode beside others.
  static bool HasBegun(const PassObservation& pass) {
    const int proposed = pass.rows - pass.sequences;
    if (!pass.mode.has_value()) return proposed > 0;
    return !pass.mode->during() || 2 * proposed >= pass.sequences;
  }

  int rounds_ = -kReadingRounds;  // Below 0: the draft may still read.
};

}  // namespace foretoken
