#pragma once

#include <optional>
#include <string>

#include "apps/foretoken/common/command_line.h"
#include "apps/foretoken/common/report_output.h"
#include "apps/lab/plan/plan_input.h"
#include "apps/lab/plan/plan_simulate_runs.h"
#include "base/result.h"
#include "json/json.h"

/// The views of `foretoken plan`: for each its options, and what adds them and what reports it.
namespace foretoken {

/// Without --simulate or --roofline.
struct PlanPredictOptions {
  std::string batches;              ///< Empty: the numbers' batch, or 1.
  std::optional<int> cache_budget;  ///< None: several are tried.
  std::string modes;                ///< Empty: all.
  bool all = false;
};
void AddPlanPredictOptions(CLI::App* app, PlanPredictOptions* options);
/// Reports the ranked tables and the choice. Of `numbers` only the load, lookaheads and fallback
/// are read.
Result<int> RunPlanPredict(const PlanPredictOptions& options, const PlanInput& input,
                           const PlanNumbers& numbers, const ReportFiles& files);

/// `foretoken plan --simulate`.
struct PlanSimulateOptions {
  SimulationSetting setting;  ///< What needs no reading.
  std::string fanout = "auto";
  std::string sweeps = "devices,frontier,pool";
  int draft_devices = 1;
  int targets = 1;
};
void AddPlanSimulateOptions(CLI::App* app, PlanSimulateOptions* options);
/// Simulates the round process of AR, SD and SSD at C = 1 and reports tables and plots. Of
/// `numbers` only the load, lookaheads and fallback are read.
Result<int> RunPlanSimulate(const PlanSimulateOptions& options, const PlanInput& input,
                            const PlanNumbers& numbers, const ReportFiles& files);

/// `foretoken plan --roofline`.
struct PlanRooflineOptions {
  std::string model = "llama-8b";
  std::string device;
  double flops = 0;
  double bandwidth = 0;
  std::optional<double> weight_bytes;  // None: those of the model's file, or 2.
  double kv_bytes = 2;
  double mask_bytes = 1;
  int ranks = 1;
  std::string contexts = "1024,32768";
  std::string accepted;
};
void AddPlanRooflineOptions(CLI::App* app, PlanRooflineOptions* options);
/// Prints Table 2 and the times by speculation length (SSSD, Appendix B and Figure 3), with plots.
/// Only the batch and the acceptance of `numbers` count.
Result<int> RunPlanRoofline(const PlanRooflineOptions& options, const PlanNumbers& numbers,
                            const ReportFiles& files);

}  // namespace foretoken
