#include "cli/plan/plan_simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/common/terminal.h"
#include "cli/options/options.h"
#include "cli/plan/plan_simulate_report.h"
#include "cli/plan/plan_simulate_runs.h"
#include "speculation/proposal.h"

namespace foretoken {
namespace {

using nlohmann::json;

constexpr int kDeviceCounts[] = {1, 2, 3, 4, 6, 8};
constexpr int kTargetCounts[] = {1, 2, 3, 4, 6, 8};
constexpr int kBatches[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
constexpr int kSweepBatch = 16;  // Figure 6 right.
constexpr SimulatedMode kSsdModes[] = {SimulatedMode::kSsdWhole, SimulatedMode::kSsdAnytime};

Result<int> ParseCount(const std::string& text, std::string_view option, int high) {
  FT_ASSIGN_OR_RETURN(const std::vector<double> values, ParseNumbers(text, option, 1, high));
  if (values.size() != 1 || values[0] != static_cast<int>(values[0])) {
    return InvalidInput(
        fmt::format("{}: '{}' is not auto or a number from 1 to {}", option, text, high));
  }
  return static_cast<int>(values[0]);
}

Result<SimulationSetting> MakeSetting(const PlanSimulateOptions& options, const PlanInput& input,
                                      const PlanNumbers& numbers) {
  SimulationSetting setting;
  setting.model = input.settings.front().model;
  if (!setting.model.draft_model().measured()) {
    return InvalidInput("--simulate needs a draft, and --calibration has measured none");
  }
  setting.target_devices =
      options.target_devices > 0 ? options.target_devices : input.target_devices;
  setting.mean_fanouts = {1, 2, 4, 8};
  setting.context = numbers.context;
  setting.channel_us = options.channel_us;
  setting.seed = options.seed;
  setting.rounds = options.rounds;
  for (const std::string& item : SplitList(options.lookaheads)) {
    FT_ASSIGN_OR_RETURN(const int lookahead, ParseCount(item, "--lookahead", kMaxProposal));
    setting.lookaheads.push_back(lookahead);
  }
  if (setting.lookaheads.empty()) return InvalidInput("--lookahead: no value is given");
  if (options.fanout != "auto") {
    FT_ASSIGN_OR_RETURN(setting.fanout, ParseCount(options.fanout, "--fanout", kMaxFanout));
  }
  FT_ASSIGN_OR_RETURN(const Fallback fallback, ParseFallback(options.fallback));
  if (fallback != Fallback::kAuto) setting.fallback = fallback;
  return setting;
}

// Runs every mode at every deployment.
Result<json> RunAll(const SimulationSetting& setting, std::span<const SimulatedMode> modes,
                    std::span<const Deployment> deployments, ProgressBar* progress) {
  json runs = json::array();
  for (const SimulatedMode mode : modes) {
    for (const Deployment& deployment : deployments) {
      FT_ASSIGN_OR_RETURN(const SimulatedRun run, RunBest(setting, mode, deployment));
      runs.push_back(RunJson(run));
      progress->Advance();
    }
  }
  return runs;
}

Result<json> RunSweep(const std::string& name, const PlanSimulateOptions& options,
                      const SimulationSetting& setting, int batch, ProgressBar* progress) {
  std::vector<Deployment> deployments;
  if (name == "devices") {
    for (const int count : kDeviceCounts) {
      deployments.push_back({options.targets, batch > 0 ? batch : kSweepBatch, count});
    }
    return RunAll(setting, kSsdModes, deployments, progress);
  }
  if (name == "frontier") {
    for (const int count : kBatches) {
      deployments.push_back({options.targets, count, options.draft_devices});
    }
    return RunAll(setting, kSimulatedModes, deployments, progress);
  }
  if (name == "pool") {
    for (const int count : kTargetCounts) {
      deployments.push_back({count, std::max(1, batch), options.draft_devices});
    }
    return RunAll(setting, kSsdModes, deployments, progress);
  }
  return InvalidInput(
      fmt::format("--sweep: '{}' is not one of devices, frontier, pool, none", name));
}

}  // namespace

void AddPlanSimulateOptions(CLI::App* app, PlanSimulateOptions* options) {
  const OptionGroup add(app, "Simulation");
  add("-k,--lookahead", &options->lookaheads, "LIST",
      "Proposal lengths K to choose among (default 1-12; --simulate: 2,4,6,8)");
  add("--fanout", &options->fanout, "F", "Bonus tokens prepared at every node (default: the best)");
  add("--fallback", &options->fallback, "F",
      "On a miss: jit, ngram, random, none or auto (default: the best)");
  add("--draft-devices", &options->draft_devices, "N",
      "That share the branches of every cache (default 1)")
      ->check(Between(1, 256));
  add("--targets", &options->targets, "N", "That share the draft devices (default 1)")
      ->check(Between(1, 256));
  add("--target-devices", &options->target_devices, "N",
      "Devices of a target, for figures per device (default: the preset's, or 1)")
      ->check(Between(1, 1024));
  add("--channel-us", &options->channel_us, "X",
      "Microseconds of a message between target and draft, one way (default 0)")
      ->check(Between(0.0, 1e9));
  add("--sweep", &options->sweeps, "LIST", "Of devices, frontier, pool (default all), or none");
  add("--rounds", &options->rounds, "N", "Verifications to simulate per setting (default 4000)")
      ->check(Between(1, 10'000'000));
  add("--seed", &options->seed, "N", "Of the simulated luck (default 1)");
}

Result<int> RunPlanSimulate(const PlanSimulateOptions& options, const PlanInput& input,
                            const PlanNumbers& numbers, const ReportFiles& files) {
  FT_ASSIGN_OR_RETURN(const SimulationSetting setting, MakeSetting(options, input, numbers));
  json report = {{"meta",
                  {{"numbers", input.source},
                   {"simulated", true},
                   {"context", setting.context},
                   {"channel_us", setting.channel_us},
                   {"seed", setting.seed}}},
                 {"devices", json::array()},
                 {"frontier", json::array()},
                 {"pool", json::array()}};
  {
    ProgressBar progress("Simulating", 0);
    const Deployment deployment = {options.targets, std::max(1, numbers.batch),
                                   options.draft_devices};
    FT_ASSIGN_OR_RETURN(report["modes"],
                        RunAll(setting, kSimulatedModes, std::span(&deployment, 1), &progress));
    if (options.sweeps != "none") {
      for (const std::string& sweep : SplitList(options.sweeps)) {
        progress.SetLabel(fmt::format("Simulating ({})", sweep));
        FT_ASSIGN_OR_RETURN(report[sweep],
                            RunSweep(sweep, options, setting, numbers.batch, &progress));
      }
    }
  }
  FT_RETURN_IF_ERROR(WriteReport(files, report, SimulationText(report), SimulationHtml));
  return 0;
}

}  // namespace foretoken
