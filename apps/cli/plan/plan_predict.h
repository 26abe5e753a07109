#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "cli/common/report_output.h"
#include "cli/plan/plan_input.h"

namespace foretoken {

/// `foretoken plan` without --simulate or --roofline.
struct PlanPredictOptions {
  std::string batches;  ///< Empty: the numbers' batch, or 1.
  int cache_budget = 0;
  std::string modes;  ///< Empty: all.
  bool all = false;
};

void AddPlanPredictOptions(CLI::App* app, PlanPredictOptions* options);

/// Reports the ranked tables and the choice. Of `numbers` only the load, lookaheads
/// and fallback are read.
Result<int> RunPlanPredict(const PlanPredictOptions& options, const PlanInput& input,
                           const PlanNumbers& numbers, const ReportFiles& files);

}  // namespace foretoken
