#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/measure.h"
#include "base/cpu_model.h"
#include "cli/common/commands.h"
#include "cli/common/terminal.h"
#include "cli/options/options.h"

namespace foretoken {
namespace {

struct DevicesOptions {
  std::string cores;
  std::string precision = "bf16";
  bool json = false;
  bool no_measuring = false;
};

constexpr int kRowCounts[] = {1, 2, 4, 8, 16, 32, 64};

// What was measured on one device.
struct Curve {
  std::string cores;
  std::string backend;
  double read_gb_per_s = 0;
  std::vector<MatMulCost> costs;
};

Curve MeasureCurve(const CoreSet& cores, Precision precision, ProgressBar* progress) {
  Device device(cores);
  device.Adopt();
  const std::unique_ptr<Backend> backend = device.MakeBackend(precision);
  progress->SetLabel("Measuring read bandwidth");
  Curve curve{FormatCores(cores), std::string(backend->name()), MeasureReadBandwidth(&device), {}};
  progress->SetLabel("Measuring the cost of rows");
  curve.costs = MeasureMatMulCosts(backend.get(), kRowCounts);
  // Of the time shown for one row, so that the table adds up.
  for (MatMulCost& cost : curve.costs) cost.ratio = cost.seconds / curve.costs.front().seconds;
  return curve;
}

std::string IsaList() {
  std::string list;
  for (const Isa isa : AvailableIsas()) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", IsaName(isa));
  }
  return list;
}

void PrintCurves(const std::vector<Curve>& curves, const std::string& precision) {
  std::vector<std::string> header = {fmt::format("rows ({})", precision)};
  for (const int rows : kRowCounts) header.push_back(fmt::format("{}", rows));
  TextTable table(std::move(header));
  for (const Curve& curve : curves) {
    std::vector<std::string> times = {fmt::format("cores {}, ms", curve.cores)};
    std::vector<std::string> ratios = {"  of one row"};
    for (const MatMulCost& cost : curve.costs) {
      times.push_back(fmt::format("{:.2f}", cost.seconds * 1e3));
      ratios.push_back(fmt::format("{:.2f}x", cost.ratio));
    }
    table.Add(std::move(times));
    table.Add(std::move(ratios));
  }
  fmt::print("\nA matrix product over that many rows at once, weights from memory ({}):\n{}",
             curves.front().backend, table.Render(2));
}

nlohmann::json CurvesJson(const std::vector<Curve>& curves) {
  nlohmann::json out = nlohmann::json::array();
  for (const Curve& curve : curves) {
    nlohmann::json costs = nlohmann::json::array();
    for (const MatMulCost& cost : curve.costs) {
      costs.push_back(
          {{"rows", cost.rows}, {"ms", cost.seconds * 1e3}, {"of_one_row", cost.ratio}});
    }
    out.push_back(
        {{"cores", curve.cores}, {"backend", curve.backend}, {"costs", std::move(costs)}});
  }
  return out;
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
  nlohmann::json json = {{"machine", CpuModel()},
                         {"logical_cores", FormatCores(logical)},
                         {"physical_cores", physical},
                         {"measured_cores", FormatCores(cores)},
                         {"default_target_cores", FormatCores(split.target)},
                         {"default_draft_cores", FormatCores(split.draft)},
                         {"instruction_sets", nlohmann::json::array()}};
  for (const Isa isa : AvailableIsas()) json["instruction_sets"].push_back(IsaName(isa));
  if (!options.json) {
    const auto line = [](std::string_view name, const std::string& value) {
      fmt::print("{:<18}{}\n", name, value);
    };
    line("machine", CpuModel());
    line("cores", fmt::format("{} ({} physical)", FormatCores(logical), physical));
    line("default split",
         fmt::format("target {}, draft {}", FormatCores(split.target), FormatCores(split.draft)));
    line("instruction sets", IsaList() + " (the last is used)");
    std::fflush(stdout);
  }
  if (!options.no_measuring) {
    std::vector<Curve> curves;
    {
      ProgressBar progress("Measuring read bandwidth", 0);
      const Precision precision = options.precision == "f32" ? Precision::kF32 : Precision::kBF16;
      curves.push_back(MeasureCurve({cores.front()}, precision, &progress));
      if (cores.size() > 1) curves.push_back(MeasureCurve(cores, precision, &progress));
    }
    const double one_core = curves.front().read_gb_per_s;
    const double all_cores = curves.back().read_gb_per_s;
    json["read_gb_per_s"] = {{"one_core", one_core}, {"all_cores", all_cores}};
    json["row_costs"] = CurvesJson(curves);
    if (!options.json) {
      fmt::print("{:<18}one core {:.1f} GB/s, {} cores {:.1f} GB/s\n", "memory reads", one_core,
                 cores.size(), all_cores);
      PrintCurves(curves, options.precision);
    }
  }
  if (options.json) fmt::print("{}\n", json.dump(2));
  return 0;
}

}  // namespace

void AddDevicesCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = app->add_subcommand(
      "devices", "Show cores and instruction sets, and measure memory and the cost of rows");
  const OptionGroup add(command);
  auto options = std::make_shared<DevicesOptions>();
  add("--cores", &options->cores, "CORES", "Measure these cores, like 0-3; all by default");
  add("--precision", &options->precision, "P",
      "Of the weights whose row cost is measured: bf16 (default) or f32")
      ->check(OneOf({"bf16", "f32"}));
  add("--no-measuring", &options->no_measuring, "Only show what is there");
  add("--json", &options->json, "Print one JSON object");
  command->footer(
      "The bandwidth of one core bounds ar on it: tokens/s times the bytes of weights "
      "and KV read per token.");
  command->callback([options, chosen] { *chosen = [options] { return RunDevices(*options); }; });
}

}  // namespace foretoken
