#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/foretoken/options/options.h"
#include "apps/lab/study/simulator_model.h"
#include "base/result.h"
#include "core/prediction/cost_model.h"

namespace foretoken {

/// Times and rates that `plan` is given on its command line, or a preset's.
struct PlanNumbers {
  std::string preset;
  std::string target_ms;
  std::string draft_ms;
  std::string sd_draft_ms;
  std::string acceptance;
  std::string hit;
  std::string hit_at_end;
  std::string ngram_acceptance;
  /// Whether any time or rate is given, or a preset.
  bool given() const;

  double context = 512;
  int batch = 0;           ///< 0: not given.
  std::string lookaheads;  ///< Empty: as each view suggests. Of predictions and simulation.
  std::string fallback = "auto";

  /// The lookaheads to choose among; `usual` where none are given.
  Result<std::vector<int>> ParseLookaheads(std::string_view usual) const;
  /// The preset (paper-70b where nothing is given), with what is given in place of its own.
  /// Without a preset, target, draft, acceptance and hit are all needed.
  Result<SimulatorPreset> Resolve() const;
};

void AddPlanNumbers(CLI::App* app, PlanNumbers* numbers);

/// "12.5", or "1:12.5,16:14": points (x ascending, y); one number is the point (1, y). `option`
/// names the option in errors.
Result<std::vector<std::pair<int, double>>> ParsePoints(std::string_view text,
                                                        std::string_view option);

/// "0.7,0.6": numbers of [low, high].
Result<std::vector<double>> ParseNumbers(std::string_view text, std::string_view option, double low,
                                         double high);

/// Where `plan` finds a calibration, and what of it to use.
struct PlanCalibrationOptions {
  std::string path;  ///< Empty: none.
  double temperature = 0;
  std::string verifier = "shared-noise";
  ModelOptions models;  ///< To measure; or to check that the calibration is theirs.
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
  int target_devices = 1;             ///< How many devices one target has.
};

/// The options of predictions and simulation; those of PlanNumbers must be there already.
void AddPlanCalibrationOptions(CLI::App* app, PlanCalibrationOptions* options);

/// Reads the calibration where one is named, which must be this machine's, and that of the models
/// where they are named; the numbers otherwise.
Result<PlanInput> ReadPlanInput(const PlanCalibrationOptions& calibration,
                                const PlanNumbers& numbers);

/// Measures the models on this machine, for seconds: enough to choose by.
Result<PlanInput> MeasurePlanInput(const PlanCalibrationOptions& options);

/// "1,2,4-6": positive whole numbers up to `high`, in the order given.
Result<std::vector<int>> ParseCounts(std::string_view option, std::string_view text, int high);

}  // namespace foretoken
