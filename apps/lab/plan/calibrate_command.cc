#include <fmt/core.h>

#include <memory>

#include "apps/foretoken/common/report_output.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/options.h"
#include "apps/foretoken/program/studies.h"
#include "apps/lab/common/study_commands.h"
#include "apps/lab/plan/calibrate.h"
#include "apps/lab/plan/calibrator.h"
#include "base/files/replace_file.h"
#include "core/prediction/cost_model.h"

namespace foretoken {
namespace {

struct CalibrateCommandOptions : CalibrateOptions {
  std::string output = "calibration.json";
  std::string html_path;
  bool json = false;
};

Result<int> Calibrate(CalibrateCommandOptions options) {
  FT_RETURN_IF_ERROR(options.model.ResolveDefaults());
  FT_ASSIGN_OR_RETURN(const Calibration calibration, MeasureCalibration(options));
  const std::string text = FormatCalibration(calibration);
  FT_RETURN_IF_ERROR(ReplaceFile(options.output, text));
  if (!options.html_path.empty()) {
    const std::string title = fmt::format("{} and {}", options.model.TargetSource().label(),
                                          options.model.DraftSource().label());
    FT_RETURN_IF_ERROR(
        ReplaceFile(options.html_path, ReportPage(CalibrationReport(calibration, title))));
  }
  if (options.json) {
    fmt::print("{}\n", text);
    return kSucceeded;
  }
  fmt::print("{}\nWritten to {}; `foretoken plan --calibration {}` plans with it.\n",
             CalibrationTable(calibration), options.output, options.output);
  return kSucceeded;
}

}  // namespace

void AddCalibrateCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddStudy(app, "calibrate");
  const OptionGroup add(command);
  auto options = std::make_shared<CalibrateCommandOptions>();
  options->prompts.limit = 4;
  options->speculation.plan.lookahead = 6;
  options->speculation.prefix_cache = false;
  options->generation.stop.max_tokens = 96;
  AddModelOptions(command, &options->model);
  AddCoreOptions(command, &options->cores);
  AddPromptOptions(command, &options->prompts);
  add("--temps,--temp,--temperature", &options->temperatures, "T,...",
      "Temperatures to measure at, like 0,0.7,1 (default)");
  add("--verify", &options->verify, "HOW",
      "Ways to verify to measure under: both (default), shared-noise or rejection")
      ->check(OneOf({"both", "shared-noise", "rejection"}));
  add("--saguaro-cs", &options->saguaro_cs, "C,...",
      "Under rejection also these C of Saguaro sampling, from 0 to 1, at fan-out 3 (default "
      "0.7,0.4,0.1)");
  const AddedOption rates_of =
      add("--rates-of", &options->rates_of, "FILE",
          "Keep the acceptance and hit rates of this calibration of the same models and measure "
          "times only: after a change of cores, or on another machine");
  for (const char* other : {"--temps", "--verify", "--saguaro-cs"}) {
    rates_of.excludes(FindOption(command, other));
  }
  add("-k,--lookahead", &options->speculation.plan.lookahead, "K",
      "Tokens per proposal, K (default 6)")
      ->check(Between(1, ProposerModel::kMaxPositions));
  add("-n,--max-tokens", &options->generation.stop.max_tokens, "N",
      "Tokens per prompt (default 96)")
      ->check(Between(2, 1 << 20));
  add("--seed", &options->generation.sampling.seed, "SEED", "Seed of the first prompt (default 0)");
  add("-o,--output", &options->output, "FILE",
      "Where the calibration goes (default calibration.json)");
  add("--html", &options->html_path, "FILE", "Also write a page with plots here");
  add("--json", &options->json, "Print the calibration instead of a table");
  SetFooter(command,
            "The speculator is given time in every round to prepare all it can, so that rates are "
            "the models' own; how much is ready in time is what `foretoken plan` works out from "
            "the times. With the bundled pair this takes minutes; --verify shared-noise takes a "
            "third of it, and --limit and -n shorten it.");
  WhenChosen(command, chosen, [options] { return Calibrate(*options); });
}

}  // namespace foretoken
