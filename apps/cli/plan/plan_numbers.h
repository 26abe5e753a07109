#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "study/simulator_model.h"

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
  double context = 512;
  int batch = 0;  ///< 0: not given.

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

}  // namespace foretoken
