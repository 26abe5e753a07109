#pragma once

#include <span>
#include <string>

#include "prediction/plan_search.h"

namespace foretoken {

/// Why the first of `ranked`, which are in order and not empty, is the fastest: two sentences that
/// compare it with the best of each other mode.
std::string ExplainChoice(std::span<const RankedPlan> ranked);

}  // namespace foretoken
