#include <memory>
#include <string>
#include <string_view>

#include "apps/foretoken/program/studies.h"
#include "apps/lab/common/study_commands.h"
#include "apps/lab/plan/plan_views.h"

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

// What errors call the views that an option says something to; empty: all of them.
std::string_view HomeOf(const std::string& group, const std::string& name) {
  if (group == "Simulation") return "--simulate";
  if (group == "Roofline") return "--roofline";
  if (group == "Choice") return "predictions, without another view";
  const bool of_all =
      group == "Options" || group == "Output" || name == "--batch" || name == "--acceptance";
  return of_all ? "" : "predictions and --simulate";
}

// Refuses options that were given and that the chosen view would ignore.
Status CheckView(const CLI::App& command, View view) {
  const std::string_view own = view == View::kSimulate   ? "--simulate"
                               : view == View::kRoofline ? "--roofline"
                                                         : "predictions";
  const std::vector<GivenOption> given = GivenOptions(command);
  for (const GivenOption& option : given) {
    const std::string name = "--" + option.long_name;
    const std::string_view home = HomeOf(option.group, name);
    if (home.empty() || home.find(own) != home.npos) continue;
    return Invalid("{} is for {}: it would change nothing here", name, home);
  }
  const auto is_given = [&given](std::string_view name) {
    return std::ranges::find(given, name, &GivenOption::long_name) != given.end();
  };
  // The published pair is simulated where nothing is given: nothing is measured for it.
  if (view != View::kSimulate || is_given("calibration")) return {};
  for (const char* name : {"temp", "verify", "target", "draft"}) {
    if (!is_given(name)) continue;
    return Invalid("with --simulate --{} needs --calibration", name);
  }
  return {};
}

Result<int> RunPlan(const PlanCommandOptions& options) {
  if (options.roofline) {
    return RunPlanRoofline(options.roofline_options, options.numbers, options.files);
  }
  const bool measured =
      !options.simulate && options.calibration.path.empty() && !options.numbers.given();
  FT_ASSIGN_OR_RETURN(const PlanInput input,
                      measured ? MeasurePlanInput(options.calibration)
                               : ReadPlanInput(options.calibration, options.numbers));
  if (options.simulate) {
    if (input.settings[0].model.first_draft().pass.several()) {
      return Invalid(
          "{}: its draft says several tokens in a pass, which --simulate does not know: leave "
          "--simulate out for predictions",
          options.calibration.path);
    }
    return RunPlanSimulate(options.simulate_options, input, options.numbers, options.files);
  }
  return RunPlanPredict(options.predict_options, input, options.numbers, options.files);
}

}  // namespace

void AddPlanCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddStudy(app, "plan");
  const OptionGroup add(command);
  const OptionGroup output(command, "Output");
  auto options = std::make_shared<PlanCommandOptions>();
  add("--roofline", &options->roofline,
      "Show what checking proposals costs on a device, from its data sheet");
  add("--simulate", &options->simulate, "Simulate the round process of ar, sd and ssd")
      ->excludes("--roofline");
  AddPlanNumbers(command, &options->numbers);
  AddPlanCalibrationOptions(command, &options->calibration);
  AddPlanSimulateOptions(command, &options->simulate_options);
  AddPlanPredictOptions(command, &options->predict_options);
  AddPlanRooflineOptions(command, &options->roofline_options);
  output("--json", &options->files.json, "FILE", "Write the figures as JSON; - for the output");
  output("--html", &options->files.html, "FILE", "Write a page with plots");
  WhenChosen(command, chosen, [options, command]() -> Result<int> {
    const View view = options->roofline   ? View::kRoofline
                      : options->simulate ? View::kSimulate
                                          : View::kPredict;
    FT_RETURN_IF_ERROR(CheckView(*command, view));
    return RunPlan(*options);
  });
}

}  // namespace foretoken
