#pragma once

#include <vector>

#include "backend/backend.h"
#include "model/config/model_config.h"

namespace foretoken {

/// The angular frequency of each of the head_dim / 2 element pairs, scaled as the config says.
std::vector<double> RopeFrequencies(const ModelConfig& config);

/// cos and sin for positions [0, max_positions), computed in double.
RopeTable MakeRopeTable(const ModelConfig& config);

}  // namespace foretoken
