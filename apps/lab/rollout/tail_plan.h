#pragma once

#include <optional>

#include "foretoken/mode.h"
#include "foretoken/speculation.h"

namespace foretoken {

/// How the last sequences of a batch speculate. When nothing is left to begin, each that ends frees
/// rows of the target's passes; the others take them for longer proposals, so that a pass costs
/// what it cost when the batch was full and brings those that are left further.
struct TailPlan {
  Mode mode;           ///< The mode of the last sequences.
  int rows = 0;        ///< The rows of a pass when the batch was full.
  int lookahead = 0;   ///< K at most.
  bool fixed = false;  ///< K stays what it was; the mode alone becomes another.
  bool asked = false;  ///< It is an error where the engine cannot follow it.

  /// The plan of each when so many run, at least one; nothing while there are too many of them to
  /// change anything. Mode auto plans by the batch itself.
  std::optional<PlanOptions> For(int running) const;
};

}  // namespace foretoken
