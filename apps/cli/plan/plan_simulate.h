#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "cli/common/report_output.h"
#include "cli/plan/plan_input.h"
#include "cli/plan/plan_simulate_runs.h"

namespace foretoken {

/// `foretoken plan --simulate`.
struct PlanSimulateOptions {
  SimulationSetting setting;  ///< What needs no reading.
  std::string fanout = "auto";
  std::string sweeps = "devices,frontier,pool";
  int draft_devices = 1;
  int targets = 1;
};

/// With those of `numbers` that predictions have too.
void AddPlanSimulateOptions(CLI::App* app, PlanSimulateOptions* options, PlanNumbers* numbers);

/// Simulates the round process of AR, SD and SSD at C = 1 and reports tables and plots. Of
/// `numbers` only the load is read.
Result<int> RunPlanSimulate(const PlanSimulateOptions& options, const PlanInput& input,
                            const PlanNumbers& numbers, const ReportFiles& files);

}  // namespace foretoken
