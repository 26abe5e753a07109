#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/parse_number.h"
#include "calibrate_measure.h"
#include "calibrate_report.h"
#include "commands.h"
#include "fingerprints.h"
#include "options.h"
#include "prompts.h"
#include "terminal.h"

namespace foretoken {
namespace {

constexpr double kMostTemperature = 4;
// Passes in which the speculator prepares everything, with a margin for trunk rows.
constexpr double kSettleMargin = 1.3;
constexpr int kRowsPerDraftPass = 32;

struct CalibrateOptions {
  ModelOptions model;
  CoreOptions cores;
  PromptOptions prompts;
  std::string temperatures = "0,0.7,1";
  int lookahead = 6;
  int max_tokens = 96;
  std::uint64_t seed = 0;
  std::string output = "calibration.json";
  std::string html_path;
  bool json = false;
};

class Calibrator {
 public:
  explicit Calibrator(CalibrateOptions options) : options_(std::move(options)) {}
  Result<int> Run();

 private:
  Status Load();
  Status EncodePrompts();
  Status MakeMeasuringEngine();
  Status Measure();
  Result<int> Report() const;

  CalibrateOptions options_;
  std::vector<double> temperatures_;
  Cores cores_;
  std::unique_ptr<LoadedModel> target_;
  std::unique_ptr<Engine> engine_;
  CalibrationTask task_;
  Calibration calibration_;
};

Result<std::vector<double>> ParseTemperatures(std::string_view text) {
  std::vector<double> temperatures;
  for (const std::string& item : SplitList(text)) {
    double value = -1;
    if (!ParseNumber(item, &value) || !(value >= 0) || value > kMostTemperature) {
      return InvalidInput(fmt::format("--temps '{}': '{}' is not a temperature from 0 to {:g}",
                                      text, item, kMostTemperature));
    }
    temperatures.push_back(value);
  }
  if (temperatures.empty()) return InvalidInput("--temps names no temperature; write it like 0,1");
  std::sort(temperatures.begin(), temperatures.end());
  temperatures.erase(std::unique(temperatures.begin(), temperatures.end()), temperatures.end());
  return temperatures;
}

Status Calibrator::Load() {
  FT_ASSIGN_OR_RETURN(temperatures_, ParseTemperatures(options_.temperatures));
  FT_RETURN_IF_ERROR(options_.model.ResolveDefaults());
  if (!options_.model.has_draft()) {
    return InvalidInput("calibrate needs a draft model; name its folder with --draft");
  }
  FT_ASSIGN_OR_RETURN(cores_, ResolveCores(options_.cores));
  if (cores_.all.size() == cores_.target.size()) {
    return InvalidInput(
        "calibrate measures mode ssd, whose draft needs a core of its own: give it one with "
        "--draft-cores that --target-cores leaves free");
  }
  FT_ASSIGN_OR_RETURN(
      calibration_.models,
      FingerprintModels(options_.model.target, options_.model.draft, options_.model.precision));
  calibration_.machine = FingerprintMachine(cores_);
  FT_ASSIGN_OR_RETURN(target_, LoadShowingProgress(options_.model.TargetSource(), cores_.target,
                                                   options_.model.ParsedPrecision()));
  return {};
}

Status Calibrator::EncodePrompts() {
  FT_ASSIGN_OR_RETURN(const std::vector<PromptSet> sets,
                      ReadPromptSets(options_.prompts.files, options_.prompts.words));
  const PromptStyle style = options_.prompts.raw ? PromptStyle::kRaw : PromptStyle::kAuto;
  for (const PromptSet& set : sets) {
    FT_ASSIGN_OR_RETURN(
        const EncodedSet encoded,
        EncodeSet(*target_->tokenizer, set, style, target_->model->config().max_positions,
                  options_.max_tokens, options_.prompts.limit));
    task_.prompts.insert(task_.prompts.end(), encoded.prompts.begin(), encoded.prompts.end());
  }
  if (task_.prompts.empty()) {
    return InvalidInput(fmt::format(
        "no prompt fits the context of {} tokens with {} of output; give shorter ones or a smaller "
        "-n",
        target_->model->config().max_positions, options_.max_tokens));
  }
  return {};
}

Status Calibrator::MakeMeasuringEngine() {
  SpeculationOptions speculation;
  speculation.lookahead = options_.lookahead;
  speculation.prefix_cache = false;
  FT_ASSIGN_OR_RETURN(EngineOptions options, speculation.ToEngineOptions(1, 0));
  options.max_lookahead = options_.lookahead;
  options.max_cache_budget = kMaxFanout * (options_.lookahead + 1);
  const ProgressBar progress("Measuring passes", 0);
  // Mode auto is there for the times that its planner starts from.
  constexpr std::array kOffered = {Mode::kSsd, Mode::kAr, Mode::kNgram, Mode::kSd, Mode::kAuto};
  FT_ASSIGN_OR_RETURN(engine_, MakeEngine(kOffered, options, target_.get(),
                                          MakeDraftSetup(options_.model, speculation, cores_)));
  calibration_.times = engine_->options().costs;
  return {};
}

Status Calibrator::Measure() {
  const int K = options_.lookahead;
  task_.lookahead = K;
  task_.stop.max_tokens = options_.max_tokens;
  task_.sampling.seed = options_.seed;
  const double rows = kMaxFanout * (K + 1) * static_cast<double>(K);
  const double passes = rows / kRowsPerDraftPass + K + 1;
  const double pass_us = calibration_.times.draft.us(kRowsPerDraftPass, task_.prompts[0].size());
  task_.settle_ns = static_cast<std::int64_t>(kSettleMargin * passes * pass_us * 1e3);

  constexpr std::size_t kRunsPerTemperature = 3;
  ProgressBar progress("Measuring",
                       task_.prompts.size() * (kRunsPerTemperature * temperatures_.size() + 2));
  task_.on_prompt = [&progress] { progress.Advance(); };
  progress.SetLabel("Measuring times");
  FT_RETURN_IF_ERROR(MeasureOverheads(*engine_, task_, &calibration_.times));
  for (const double temperature : temperatures_) {
    progress.SetLabel(fmt::format("Measuring acceptance and hits at T = {:g}", temperature));
    task_.sampling.temperature = static_cast<float>(temperature);
    FT_ASSIGN_OR_RETURN(CalibratedSetting setting, MeasureRates(*engine_, task_));
    setting.temperature = temperature;
    calibration_.settings.push_back(std::move(setting));
  }
  return {};
}

Result<int> Calibrator::Report() const {
  const std::string text = FormatCalibration(calibration_);
  FT_RETURN_IF_ERROR(WriteFile(options_.output, text));
  if (!options_.html_path.empty()) {
    const std::string title = fmt::format("{} and {}", ModelLabel(options_.model.TargetSource()),
                                          ModelLabel(options_.model.DraftSource()));
    FT_RETURN_IF_ERROR(WriteFile(options_.html_path, CalibrationPage(calibration_, title)));
  }
  if (options_.json) {
    fmt::print("{}\n", text);
    return 0;
  }
  fmt::print("{}\nWritten to {}; `foretoken plan --calibration {}` plans with it.\n",
             CalibrationTable(calibration_), options_.output, options_.output);
  return 0;
}

Result<int> Calibrator::Run() {
  FT_RETURN_IF_ERROR(Load());
  FT_RETURN_IF_ERROR(EncodePrompts());
  FT_RETURN_IF_ERROR(MakeMeasuringEngine());
  FT_RETURN_IF_ERROR(Measure());
  return Report();
}

}  // namespace

void AddCalibrateCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = app->add_subcommand(
      "calibrate", "Measure acceptance, cache hits and times of a pair on this machine");
  auto options = std::make_shared<CalibrateOptions>();
  options->prompts.limit = 4;
  AddModelOptions(command, &options->model);
  AddCoreOptions(command, &options->cores);
  AddPromptOptions(command, &options->prompts);
  command
      ->add_option("--temps", options->temperatures,
                   "Temperatures to measure at, like 0,0.7,1 (default)")
      ->type_name("T,...");
  command->add_option("-k,--lookahead", options->lookahead, "Tokens per proposal, K (default 6)")
      ->check(Between(1, ProposerModel::kMaxPositions))
      ->type_name("K");
  command->add_option("-n,--max-tokens", options->max_tokens, "Tokens per prompt (default 96)")
      ->check(Between(2, 1 << 20))
      ->type_name("N");
  command->add_option("--seed", options->seed, "Seed of the first prompt (default 0)")
      ->type_name("SEED");
  command
      ->add_option("-o,--output", options->output,
                   "Where the calibration goes (default calibration.json)")
      ->type_name("FILE");
  command->add_option("--html", options->html_path, "Also write a page with plots here")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print the calibration instead of a table");
  command->footer(
      "The speculator is given time in every round to prepare all it can, so that rates are the "
      "models' own; how much is ready in time is what `foretoken plan` works out from the times.");
  command->callback(
      [options, chosen] { *chosen = [options] { return Calibrator(*options).Run(); }; });
}

}  // namespace foretoken
