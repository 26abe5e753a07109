#pragma once

#include <vector>

#include "core/backend/backend.h"
#include "core/model/config/model_config.h"

namespace foretoken {

/// The angular frequency of each of the dims / 2 pairs, scaled as the description says.
std::vector<double> RopeFrequencies(const RopeSpec& rope);

/// cos and sin for positions [0, positions), computed in double.
RopeTable MakeRopeTable(const RopeSpec& rope, int positions);

}  // namespace foretoken
