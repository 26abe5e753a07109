#include "cli/plan/plan_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/parse_number.h"
#include "cli/plan/fingerprints.h"
#include "study/calibration.h"

namespace foretoken {
namespace {

Status CheckFingerprints(const PlanCalibrationOptions& options, const Calibration& calibration) {
  const std::string& name = options.path;
  FT_ASSIGN_OR_RETURN(const Cores cores, ResolveCores(options.cores));
  MachineFingerprint machine = FingerprintMachine(cores);
  if (calibration.models.draft.empty()) machine.draft_cores = calibration.machine.draft_cores;
  FT_RETURN_IF_ERROR(CheckMachine(calibration, machine, name));
  if (options.models.target.empty() && options.models.draft.empty()) return {};
  ModelOptions models = options.models;
  FT_RETURN_IF_ERROR(models.ResolveDefaults());
  FT_ASSIGN_OR_RETURN(const ModelFingerprints fingerprints,
                      FingerprintModels(models.target, models.draft, models.precision));
  return CheckModels(calibration, fingerprints, name);
}

Result<PlanInput> FromCalibration(const PlanCalibrationOptions& options) {
  FT_ASSIGN_OR_RETURN(const Calibration calibration, ReadCalibration(options.path));
  FT_RETURN_IF_ERROR(CheckFingerprints(options, calibration));
  PlanInput input;
  double temperature = 0;
  for (const CalibratedSetting& setting : calibration.settings) {
    // Each C once: the setting whose temperature is closest to the one asked for.
    if (&setting !=
        FindSetting(calibration, options.temperature, options.verifier, setting.saguaro_c)) {
      continue;
    }
    temperature = setting.temperature;
    input.settings.push_back(
        {.saguaro_c = setting.saguaro_c, .model = ToCostModel(calibration, setting)});
  }
  if (input.settings.empty()) {
    return InvalidInput(
        fmt::format("{}: holds nothing measured with --verify {}", options.path, options.verifier));
  }
  std::ranges::stable_sort(input.settings, std::greater<>(), &PlanSetting::saguaro_c);
  input.source =
      fmt::format("From {} ({}, target on {} cores, draft on {}), {} at T = {:g}", options.path,
                  calibration.machine.cpu, calibration.machine.target_cores,
                  calibration.machine.draft_cores, options.verifier, temperature);
  if (temperature != options.temperature) {
    input.source += fmt::format(", the closest to {:g} that was measured", options.temperature);
  }
  input.source += ".";
  return input;
}

}  // namespace

void AddPlanCalibrationOptions(CLI::App* app, PlanCalibrationOptions* options) {
  const OptionGroup add(app, "Calibration");
  CLI::Option* path = add("--calibration", &options->path, "FILE",
                          "Plan from this file of `foretoken calibrate`; must be of this machine");
  for (const char* number : {"--preset", "--target-ms", "--draft-ms", "--sd-draft-ms",
                             "--acceptance", "--hit", "--hit-at-end", "--ngram-acceptance"}) {
    path->excludes(app->get_option(number));
  }
  add("--temp,--temperature", &options->temperature, "T",
      "Plan for this temperature; the closest measured one is taken (default 0)")
      ->check(Between(0.0, 100.0))
      ->needs(path);
  add("--verify", &options->verifier, "V",
      "Plan for this verifier: shared-noise (default) or rejection")
      ->check(OneOf({"shared-noise", "rejection"}))
      ->needs(path);
  AddModelOptions(app, &options->models);
  AddCoreOptions(app, &options->cores);
}

Result<PlanInput> ReadPlanInput(const PlanCalibrationOptions& calibration,
                                const PlanNumbers& numbers) {
  if (!calibration.path.empty()) return FromCalibration(calibration);
  FT_ASSIGN_OR_RETURN(const SimulatorPreset preset, numbers.Resolve());
  PlanInput input;
  input.settings.push_back({.saguaro_c = 1, .model = preset.model});
  input.source = preset.description + ".";
  input.target_devices = preset.target_devices;
  return input;
}

Result<std::vector<int>> ParseCounts(std::string_view option, std::string_view text, int high) {
  std::vector<int> counts;
  for (const std::string& item : SplitList(text)) {
    const std::size_t dash = item.find('-', 1);
    const std::string_view view = item;
    int first = 0;
    bool good = ParseNumber(view.substr(0, dash), &first);
    int last = first;
    if (dash != std::string::npos) good = good && ParseNumber(view.substr(dash + 1), &last);
    if (!good || first < 1 || last < first || last > high) {
      return InvalidInput(fmt::format("{} '{}': '{}' is not a number or a range from 1 to {}",
                                      option, text, item, high));
    }
    for (int count = first; count <= last; ++count) counts.push_back(count);
  }
  if (counts.empty()) return InvalidInput(fmt::format("{} names no number", option));
  return counts;
}

}  // namespace foretoken
