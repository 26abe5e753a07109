#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/plan/plan_simulate_runs.h"

namespace foretoken {

/// An entry of the report's lists.
nlohmann::json RunJson(const SimulatedRun& run);

// Both read a report of `plan --simulate`: {"meta", and lists of runs: "modes" (one deployment,
// every mode, AR first), "devices" (SSD over the number of draft devices, Figure 6 right),
// "frontier" (every mode over the batch, Figure 7 right), "pool" (SSD over the number of targets
// that share the draft)}.
std::string SimulationText(const nlohmann::json& report);
std::string SimulationHtml(const nlohmann::json& report);

}  // namespace foretoken
