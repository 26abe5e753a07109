#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/options.h"
#include "base/threads/cores.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/cpu/measure.h"
#include "core/backend/cpu/quant/quant_isa.h"
#include "json/json.h"

namespace foretoken {
namespace {

struct DevicesOptions {
  std::string cores;
  std::string precision = "bf16";
  bool json = false;
  bool no_measuring = false;
};

constexpr int kRowCounts[] = {1, 2, 4, 8, 16, 32, 64};

// What rows cost on some cores; sets the bandwidth of reads there.
Json MeasureCosts(const CoreSet& cores, Precision precision, ProgressBar* progress,
                  double* read_gb_per_s) {
  Device device(cores);
  device.Adopt();
  const std::unique_ptr<Backend> backend = device.MakeBackend(precision);
  progress->SetLabel("Measuring read bandwidth");
  *read_gb_per_s = MeasureReadBandwidth(&device);
  progress->SetLabel("Measuring the cost of rows");
  Json costs = Json::array();
  double one_row = 0;
  for (const MatMulCost& cost : MeasureMatMulCosts(backend.get(), kRowCounts)) {
    // The ratio is to the time shown for one row, so that the table adds up.
    if (costs.empty()) one_row = cost.seconds;
    costs.push_back(
        {{"rows", cost.rows}, {"ms", cost.seconds * 1e3}, {"of_one_row", cost.seconds / one_row}});
  }
  return {{"cores", FormatCores(cores)}, {"backend", backend->name()}, {"costs", costs}};
}

void PrintCosts(const Json& curves, const std::string& precision) {
  std::vector<std::string> header = {fmt::format("rows ({})", precision)};
  for (const int rows : kRowCounts) header.push_back(fmt::format("{}", rows));
  TextTable table(std::move(header));
  for (const Json& curve : curves) {
    std::vector<std::string> times = {
        fmt::format("cores {}, ms", curve["cores"].get<std::string>())};
    std::vector<std::string> ratios = {"  of one row"};
    for (const Json& cost : curve["costs"]) {
      times.push_back(fmt::format("{:.2f}", cost["ms"].get<double>()));
      ratios.push_back(fmt::format("{:.2f}x", cost["of_one_row"].get<double>()));
    }
    table.Add(std::move(times));
    table.Add(std::move(ratios));
  }
  fmt::print("\nA matrix product over that many rows at once, weights from memory ({}):\n{}",
             curves[0]["backend"].get<std::string>(), table.Render(2));
}

Result<int> RunDevices(const DevicesOptions& options) {
  std::vector<int> logical = AvailableCores();
  CoreSet cores = AvailablePhysicalCores();
  const CoreSplit split = DefaultCoreSplit(cores);
  std::sort(logical.begin(), logical.end());
  std::sort(cores.begin(), cores.end());
  const std::size_t physical = cores.size();
  if (!options.cores.empty()) {
    FT_ASSIGN_OR_RETURN(cores, ParseCores(options.cores));
  }
  std::vector<std::string_view> isas;
  for (const cpu::Kernels* kernels : AvailableKernels()) isas.push_back(kernels->name);
  std::vector<std::string_view> quant_isas;
  for (const cpu::QuantKernels* each : AvailableQuantKernels()) quant_isas.push_back(each->name);
  Json report = {{"machine", CpuModel()},
                 {"logical_cores", FormatCores(logical)},
                 {"physical_cores", physical},
                 {"measured_cores", FormatCores(cores)},
                 {"default_target_cores", FormatCores(split.target)},
                 {"default_draft_cores", FormatCores(split.draft)},
                 {"instruction_sets", isas},
                 {"quantised_instruction_sets", quant_isas}};
  if (!options.json) {
    const auto line = [](std::string_view name, const std::string& value) {
      fmt::print("{:<18}{}\n", name, value);
    };
    line("machine", CpuModel());
    line("cores", fmt::format("{} ({} physical)", FormatCores(logical), physical));
    line("default split",
         fmt::format("target {}, draft {}", FormatCores(split.target), FormatCores(split.draft)));
    line("instruction sets", fmt::format("{} (the last is used)", fmt::join(isas, ", ")));
    line("quantised weights", fmt::format("{} (likewise)", fmt::join(quant_isas, ", ")));
    std::fflush(stdout);
  }
  if (!options.no_measuring) {
    double one_core = 0;
    double all_cores = 0;
    {
      ProgressBar progress("Measuring read bandwidth", 0);
      const Precision precision = ParsePrecision(options.precision).value_or(Precision::kBF16);
      report["row_costs"].push_back(MeasureCosts({cores.front()}, precision, &progress, &one_core));
      all_cores = one_core;
      if (cores.size() > 1) {
        report["row_costs"].push_back(MeasureCosts(cores, precision, &progress, &all_cores));
      }
    }
    report["read_gb_per_s"] = {{"one_core", one_core}, {"all_cores", all_cores}};
    if (!options.json) {
      fmt::print("{:<18}one core {:.1f} GB/s, {} cores {:.1f} GB/s\n", "memory reads", one_core,
                 cores.size(), all_cores);
      PrintCosts(report["row_costs"], options.precision);
    }
  }
  if (options.json) fmt::print("{}\n", report.dump(2));
  return 0;
}

}  // namespace

void AddDevicesCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddCommand(
      app, "devices", "Show cores and instruction sets, and measure memory and the cost of rows");
  const OptionGroup add(command);
  auto options = std::make_shared<DevicesOptions>();
  add("--cores", &options->cores, "CORES", "Measure these cores, like 0-3; all by default");
  add("--precision", &options->precision, "P",
      "Of the weights whose row cost is measured: bf16 (default) or f32")
      ->check(OneOf({"bf16", "f32"}));
  add("--no-measuring", &options->no_measuring, "Only show what is there");
  add("--json", &options->json, "Print one JSON object");
  SetFooter(command,
            "The bandwidth of one core bounds ar on it: tokens/s times the bytes of weights "
            "and KV read per token.");
  WhenChosen(command, chosen, [options] { return RunDevices(*options); });
}

}  // namespace foretoken
