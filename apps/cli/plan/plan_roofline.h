#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "cli/common/report_output.h"
#include "cli/plan/plan_input.h"

namespace foretoken {

/// `foretoken plan --roofline`.
struct PlanRooflineOptions {
  std::string model = "llama-8b";
  std::string device;
  double flops = 0;
  double bandwidth = 0;
  double weight_bytes = 2;
  double mask_bytes = 1;
  int ranks = 1;
  std::string contexts = "1024,32768";
  std::string accepted;
};

void AddPlanRooflineOptions(CLI::App* app, PlanRooflineOptions* options);

/// Of `numbers`, the batch and the acceptance count. Prints Table 2 and the times by speculation
/// length (SSSD, Appendix B and Figure 3), with plots.
Result<int> RunPlanRoofline(const PlanRooflineOptions& options, const PlanNumbers& numbers,
                            const ReportFiles& files);

}  // namespace foretoken
