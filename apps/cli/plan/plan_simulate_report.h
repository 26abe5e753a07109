#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/plan/plan_simulate_runs.h"

namespace foretoken {

/// Everything that `plan --simulate` has run.
struct SimulationReport {
  SimulationSetting setting;
  std::vector<SimulatedRun> modes;     ///< One deployment, every mode; AR first.
  std::vector<SimulatedRun> devices;   ///< SSD over the number of draft devices (Figure 6 right).
  std::vector<SimulatedRun> frontier;  ///< Every mode over the batch (Figure 7 right).
  std::vector<SimulatedRun> pool;      ///< SSD over the number of targets that share the draft.
};

std::string SimulationText(const SimulationReport& report);
nlohmann::json SimulationJson(const SimulationReport& report);
std::string SimulationHtml(const SimulationReport& report);

}  // namespace foretoken
