#include <fmt/core.h>

#include <memory>
#include <string>
#include <string_view>

#include "cli/common/commands.h"
#include "cli/plan/plan_input.h"
#include "cli/plan/plan_predict.h"
#include "cli/plan/plan_roofline.h"
#include "cli/plan/plan_simulate.h"

namespace foretoken {
namespace {

struct PlanCommandOptions {
  bool roofline = false;
  bool simulate = false;
  PlanNumbers numbers;
  PlanCalibrationOptions calibration;
  PlanPredictOptions predict_options;
  PlanRooflineOptions roofline_options;
  PlanSimulateOptions simulate_options;
  ReportFiles files;
};

enum class View { kPredict, kSimulate, kRoofline };

// Whether an option of `group` says something to `view`.
bool Applies(View view, const std::string& group, const std::string& name) {
  const bool shared = name == "--lookahead" || name == "--fallback";
  if (group == "Simulation") return view == View::kSimulate || (shared && view == View::kPredict);
  if (group == "Roofline") return view == View::kRoofline;
  if (group == "Choice") return view == View::kPredict;
  if (group == "Calibration" || group == "Models" || group == "Cores") {
    return view != View::kRoofline;
  }
  if (group == "Numbers" && view == View::kRoofline) {
    return name == "--batch" || name == "--acceptance";
  }
  return true;
}

// Refuses options that were given and that the chosen view would ignore.
Status CheckView(const CLI::App& command, View view) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    const std::string name = "--" + option->get_lnames().front();
    const std::string& group = option->get_group();
    if (Applies(view, group, name)) continue;
    const std::string_view home = group == "Simulation" ? "--simulate"
                                  : group == "Roofline" ? "--roofline"
                                  : group == "Choice"   ? "predictions, without another view"
                                                        : "predictions and --simulate";
    return InvalidInput(fmt::format("{} is for {}: it would change nothing here", name, home));
  }
  return {};
}

Result<int> RunPlan(const PlanCommandOptions& options) {
  if (options.roofline) {
    return RunPlanRoofline(options.roofline_options, options.numbers, options.files);
  }
  if (!options.simulate && !options.files.html.empty()) {
    return InvalidInput("--html needs --simulate or --roofline");
  }
  FT_ASSIGN_OR_RETURN(const PlanInput input, ReadPlanInput(options.calibration, options.numbers));
  if (options.simulate) {
    return RunPlanSimulate(options.simulate_options, input, options.numbers, options.files);
  }
  return RunPlanPredict(options.predict_options, input, options.numbers, options.files);
}

}  // namespace

void AddPlanCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = app->add_subcommand(
      "plan", "Predict the speed of every mode and setting and choose; simulate; show a roofline");
  const OptionGroup add(command);
  const OptionGroup output(command, "Output");
  auto options = std::make_shared<PlanCommandOptions>();
  add("--roofline", &options->roofline,
      "Show what a verification pass costs on a device (SSSD, Appendix B)");
  add("--simulate", &options->simulate, "Simulate the round process of ar, sd and ssd")
      ->excludes("--roofline");
  AddPlanNumbers(command, &options->numbers);
  AddPlanCalibrationOptions(command, &options->calibration);
  AddPlanSimulateOptions(command, &options->simulate_options, &options->numbers);
  AddPlanPredictOptions(command, &options->predict_options);
  AddPlanRooflineOptions(command, &options->roofline_options);
  output("--json", &options->files.json, "FILE", "Write the figures as JSON; - for the output");
  output("--html", &options->files.html, "FILE", "Write a page with plots");
  command->callback([options, command, chosen] {
    *chosen = [options, command]() -> Result<int> {
      const View view = options->roofline   ? View::kRoofline
                        : options->simulate ? View::kSimulate
                                            : View::kPredict;
      FT_RETURN_IF_ERROR(CheckView(*command, view));
      return RunPlan(*options);
    };
  });
}

}  // namespace foretoken
