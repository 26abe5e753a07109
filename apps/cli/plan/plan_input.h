#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/options/options.h"
#include "cli/plan/plan_numbers.h"
#include "prediction/cost_model.h"

namespace foretoken {

/// Where `plan` finds a calibration, and what of it to use.
struct PlanCalibrationOptions {
  std::string path;
  double temperature = 0;
  std::string verifier = "shared-noise";
  ModelOptions models;  ///< Named only to check that the calibration is theirs.
  CoreOptions cores;
};

/// One way of choosing and verifying tokens, ready for the planner.
struct PlanSetting {
  double saguaro_c = 1;
  CostModel model;
};

/// What is planned for.
struct PlanInput {
  std::vector<PlanSetting> settings;  ///< One for every C to choose from, C = 1 first.
  std::string source;                 ///< A line for people: where the numbers come from.
  int target_devices = 1;             ///< Of one target.
};

/// The options of predictions and simulation; those of PlanNumbers must be there already.
void AddPlanCalibrationOptions(CLI::App* app, PlanCalibrationOptions* options);

/// Reads the calibration where one is named, which must be this machine's, and that of the models
/// where they are named; the numbers otherwise.
Result<PlanInput> ReadPlanInput(const PlanCalibrationOptions& calibration,
                                const PlanNumbers& numbers);

/// "1,2,4-6": positive whole numbers up to `high`, in the order given.
Result<std::vector<int>> ParseCounts(std::string_view option, std::string_view text, int high);

}  // namespace foretoken
