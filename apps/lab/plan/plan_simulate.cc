#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/options.h"
#include "apps/lab/plan/plan_views.h"
#include "core/speculation/proposal.h"
#include "json/json.h"

namespace foretoken {
namespace {

constexpr const char* kSpeed = "tokens_per_s_per_sequence";
constexpr std::span<const SimulatedMode> kAllModes = kSimulatedModes;
constexpr int kCounts[] = {1, 2, 3, 4, 6, 8};
constexpr int kBatches[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};

// Runs of some modes over deployments that differ in one number.
struct Sweep {
  const char* name;
  const char* title;
  const char* key;  // The name of the number in a run's JSON.
  int Deployment::*number;
  std::span<const int> values;
  std::span<const SimulatedMode> modes;
  int batch = 1;  // Where none is given.
};
constexpr Sweep kSimulatedSweeps[] = {
    {"devices", "Draft devices that share every cache's branches", "draft_devices",
     &Deployment::draft_devices, kCounts, kAllModes.last(2), 16},  // Figure 6 right.
    {"frontier", "Batch: throughput against latency", "batch", &Deployment::batch, kBatches,
     kAllModes},  // Figure 7 right.
    {"pool", "Targets that share the draft devices", "targets", &Deployment::targets, kCounts,
     kAllModes.last(2)},
};

// "jit", "jit, batch waits", "none" ...
std::string MissText(const SimulatedRun& run) {
  std::string text(FallbackName(run.options.fallback));
  if (run.options.fallback != Fallback::kJit || run.options.batch == 1) return text;
  const JitWait wait = run.options.jit_wait;
  if (wait == JitWait::kNobody) return text + ", nobody waits";
  return text + (wait == JitWait::kBatch ? ", batch waits" : ", sequence waits");
}

// The speed of the autoregressive run of the same batch, or of the first run.
double Baseline(const Json& runs, const Json& run) {
  for (const Json& other : runs) {
    if (other["mode"] == "ar" && other["batch"] == run["batch"]) return other[kSpeed];
  }
  return runs[0][kSpeed];
}

std::vector<std::string> RunCells(const Json& runs, const Json& run) {
  const bool ssd = run.contains("hit_rate");
  const auto number = [&run](const char* key) { return run[key].get<double>(); };
  int budget = 0;
  for (const int fanout : run.value("fanout", Json::array())) budget += fanout;
  return {run["mode"],
          FormatNumber(number(kSpeed)),
          FormatNumber(number("tokens_per_s")),
          FormatNumber(number("tokens_per_s_per_device")),
          fmt::format("{:.2f}x", number(kSpeed) / Baseline(runs, run)),
          run.contains("lookahead") ? run["lookahead"].dump() : "-",
          ssd ? fmt::format("{}", budget) : "-",
          fmt::format("{:.2f}", number("tokens_per_round")),
          ssd ? FormatPercent(run["hit_rate"]["all"]) : "-",
          FormatDuration(number("round_ms") * 1e6),
          FormatPercent(number("target_busy")),
          ssd ? FormatPercent(number("draft_busy")) : "-",
          ssd ? run["fallback"].get<std::string>() : "-"};
}

// `swept`: the key of a second column, if any.
std::string RunTable(const Json& runs, const std::string& swept) {
  const auto with_swept = [&swept](std::vector<std::string> row, const std::string& cell) {
    if (!swept.empty()) row.insert(row.begin() + 1, cell);
    return row;
  };
  TextTable table(
      with_swept({"mode", "tokens/s each", "in all", "per device", "speed-up", "K", "B",
                  "tokens a round", "hits", "round", "target busy", "draft busy", "on a miss"},
                 swept == "draft_devices" ? "draft devices" : swept));
  for (const Json& run : runs) {
    table.Add(with_swept(RunCells(runs, run), swept.empty() ? "" : run[swept].dump()));
  }
  return table.Render(2);
}

// "1 target", "2 targets".
std::string Count(int count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// An entry of the report's lists.
Json SimulatedRunJson(const SimulatedRun& run) {
  const SimulatorResult& result = run.result;
  Json out = {{"mode", run.mode},
              {"targets", run.options.targets},
              {"batch", run.options.batch},
              {"devices", run.devices},
              {"tokens_per_s", result.tokens_per_second()},
              {"tokens_per_s_per_sequence", result.tokens_per_second_per_sequence()},
              {"tokens_per_s_per_device", result.tokens_per_second() / run.devices},
              {"tokens_per_round", result.tokens_per_round()},
              {"round_ms", result.round_us() / 1e3},
              {"target_busy", result.target_utilisation()}};
  if (run.options.mode != Mode::kAr) out["lookahead"] = run.options.lookahead;
  if (!run.options.mode.during()) return out;
  out["draft_devices"] = result.draft_devices;
  out["fanout"] = run.options.primary.at;
  out["fallback"] = MissText(run);
  out["hit_rate"] = {{"all", result.hit_rate()},
                     {"before_k", result.hit_rate_before_end()},
                     {"at_k", result.hit_rate_at_end()}};
  out["proposal_length"] = result.proposal_length();
  out["draft_busy"] = result.draft_utilisation();
  return out;
}

// Reads the report: {"kind", "meta", and lists of runs: "modes" (one deployment, every mode, AR
// first), and one for each sweep, empty where it was not wanted}.
std::string SimulationText(const Json& report) {
  const Json& run = report["modes"].back();
  std::string text = fmt::format(
      "{}\nBatch {}, {}, {} (simulated)\n\n{}", report["meta"]["numbers"].get<std::string>(),
      run["batch"].get<int>(), Count(run["targets"], "target"),
      Count(run["draft_devices"], "draft device"), RunTable(report["modes"], ""));
  for (const Sweep& sweep : kSimulatedSweeps) {
    const Json& runs = report[sweep.name];
    if (!runs.empty()) text += fmt::format("\n{}\n{}", sweep.title, RunTable(runs, sweep.key));
  }
  return text;
}

Result<SimulationSetting> MakeSetting(const PlanSimulateOptions& options, const PlanInput& input,
                                      const PlanNumbers& numbers) {
  SimulationSetting setting = options.setting;
  setting.model = input.settings.front().model;
  if (!setting.model.draft_model().measured()) {
    return InvalidInput("--simulate needs a draft, and --calibration has measured none");
  }
  if (setting.target_devices == 0) setting.target_devices = input.target_devices;
  setting.mean_fanouts = {1, 2, 4, 8};
  setting.context = numbers.context;
  FT_ASSIGN_OR_RETURN(setting.lookaheads, numbers.ParseLookaheads("2,4,6,8"));
  if (options.fanout != "auto") {
    FT_ASSIGN_OR_RETURN(const std::vector<double> fanouts,
                        ParseNumbers(options.fanout, "--fanout", 1, kMaxFanout));
    setting.fanout = static_cast<int>(fanouts[0]);
    if (fanouts.size() != 1 || fanouts[0] != *setting.fanout) {
      return Invalid("--fanout: '{}' is not auto or a number from 1 to {}", options.fanout,
                     kMaxFanout);
    }
  }
  FT_ASSIGN_OR_RETURN(const Fallback fallback, ParseFallback(numbers.fallback));
  if (fallback != Fallback::kAuto) setting.fallback = fallback;
  return setting;
}

// Runs every mode at every deployment.
Result<Json> RunAll(const SimulationSetting& setting, std::span<const SimulatedMode> modes,
                    std::span<const Deployment> deployments, ProgressBar* progress) {
  Json runs = Json::array();
  for (const SimulatedMode mode : modes) {
    for (const Deployment& deployment : deployments) {
      FT_ASSIGN_OR_RETURN(const SimulatedRun run, RunBest(setting, mode, deployment));
      runs.push_back(SimulatedRunJson(run));
      progress->Advance();
    }
  }
  return runs;
}

// `batch`: 0 where none was given.
Result<Json> RunSweep(const Sweep& sweep, const SimulationSetting& setting,
                      const PlanSimulateOptions& options, int batch, ProgressBar* progress) {
  progress->SetLabel(fmt::format("Simulating ({})", sweep.name));
  std::vector<Deployment> deployments;
  for (const int value : sweep.values) {
    deployments.push_back(
        {options.targets, batch > 0 ? batch : sweep.batch, options.draft_devices});
    deployments.back().*sweep.number = value;
  }
  return RunAll(setting, sweep.modes, deployments, progress);
}

}  // namespace

void AddPlanSimulateOptions(CLI::App* app, PlanSimulateOptions* options) {
  const OptionGroup add(app, "Simulation");
  add("--fanout", &options->fanout, "F", "Bonus tokens prepared at every node (default: the best)");
  add("--draft-devices", &options->draft_devices, "N",
      "That share the branches of every cache (default 1)")
      ->check(Between(1, 256));
  add("--targets", &options->targets, "N", "That share the draft devices (default 1)")
      ->check(Between(1, 256));
  add("--target-devices", &options->setting.target_devices, "N",
      "Devices of a target, for figures per device (default: the preset's, or 1)")
      ->check(Between(1, 1024));
  add("--channel-us", &options->setting.channel_us, "X",
      "Microseconds of a message between target and draft, one way (default 0)")
      ->check(Between(0.0, 1e9));
  add("--sweep", &options->sweeps, "LIST", "Of devices, frontier, pool (default all), or none");
  add("--rounds", &options->setting.rounds, "N",
      "Verifications to simulate per setting (default 4000)")
      ->check(Between(1, 10'000'000));
  add("--seed", &options->setting.seed, "N", "Of the simulated luck (default 1)");
}

Result<int> RunPlanSimulate(const PlanSimulateOptions& options, const PlanInput& input,
                            const PlanNumbers& numbers, const ReportFiles& files) {
  FT_ASSIGN_OR_RETURN(const SimulationSetting setting, MakeSetting(options, input, numbers));
  Json report = {{"kind", "simulation"},
                 {"meta",
                  {{"numbers", input.source},
                   {"simulated", true},
                   {"context", setting.context},
                   {"channel_us", setting.channel_us},
                   {"seed", setting.seed}}}};
  for (const Sweep& sweep : kSimulatedSweeps) report[sweep.name] = Json::array();
  {
    ProgressBar progress("Simulating", 0);
    const Deployment deployment = {options.targets, std::max(1, numbers.batch),
                                   options.draft_devices};
    FT_ASSIGN_OR_RETURN(report["modes"],
                        RunAll(setting, kSimulatedModes, std::span(&deployment, 1), &progress));
    for (const std::string& name : SplitList(options.sweeps == "none" ? "" : options.sweeps)) {
      const Sweep* sweep = std::ranges::find(kSimulatedSweeps, name, &Sweep::name);
      if (sweep == std::end(kSimulatedSweeps)) {
        return Invalid("--sweep: '{}' is not one of devices, frontier, pool, none", name);
      }
      FT_ASSIGN_OR_RETURN(report[name],
                          RunSweep(*sweep, setting, options, numbers.batch, &progress));
    }
  }
  FT_RETURN_IF_ERROR(WriteReport(files, report, SimulationText(report)));
  return 0;
}

}  // namespace foretoken
