#pragma once

#include <algorithm>

#include "core/planner/observations.h"

namespace foretoken {

/// Whether rounds measure the speed of the mode in use yet: while the draft reads the contexts they
/// do not.
class Settling {
 public:
  /// Sequences change to another mode.
  void Restart() { rounds_ = -kReadingRounds; }

  /// A round; true if it counts.
  bool Observe(const PassObservation& pass) {
    if (HasBegun(pass)) rounds_ = std::max(rounds_, 0);
    return ++rounds_ > kSettlingRounds;
  }

 private:
  // After a change of mode the draft first reads the contexts: so many rounds at most.
  static constexpr int kReadingRounds = 64;
  // Until two rounds from the first that verifies something: the tenth, where 16 contexts of 128
  // are read.
  static constexpr int kSettlingRounds = 2;

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
