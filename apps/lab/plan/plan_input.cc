#include "apps/lab/plan/plan_input.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "apps/foretoken/common/time_units.h"
#include "apps/lab/plan/calibrator.h"
#include "apps/lab/plan/fingerprints.h"
#include "apps/lab/study/calibration.h"
#include "base/text/parse_number.h"

namespace foretoken {
namespace {

Result<double> ParseFinite(std::string_view text, std::string_view option) {
  double value = 0;
  if (!ParseNumber(text, &value) || !std::isfinite(value)) {
    return Invalid("{}: '{}' is not a number", option, text);
  }
  return value;
}

// The parsers of numbers leave `out` as it is where nothing was given: `text` is empty.

// A pass's time by rows, whatever the context.
Status ParseTimes(std::string_view text, std::string_view option, TimeTable* out) {
  if (text.empty()) return {};
  FT_ASSIGN_OR_RETURN(const auto points, ParsePoints(text, option));
  std::vector<int> rows;
  std::vector<double> us;
  for (const auto& [row, ms] : points) {
    rows.push_back(row);
    us.push_back(ms * kUsPerMs);
  }
  const Result<TimeTable> table = TimeTable::Make(rows, std::vector<int>{1}, us);
  if (!table.ok()) return Invalid("{}: {}", option, table.error().message);
  *out = *table;
  return {};
}

// Probabilities.
template <std::size_t N>
Status ParseRates(std::string_view text, std::string_view option, StaticVector<double, N>* out) {
  if (text.empty()) return {};
  FT_ASSIGN_OR_RETURN(const std::vector<double> values, ParseNumbers(text, option, 0, 1));
  if (values.size() > N) {
    return Invalid("{}: {} values are more than {}", option, values.size(), N);
  }
  out->clear();
  for (const double value : values) out->push_back(value);
  return {};
}

Status ParseHits(std::string_view text, std::string_view option, HitCurve* out) {
  StaticVector<double, kMaxFanout> hits;
  FT_RETURN_IF_ERROR(ParseRates(text, option, &hits));
  if (!hits.empty()) *out = HitCurve::FromMeasured(hits);
  return {};
}

Status CheckFingerprints(const PlanCalibrationOptions& options, const Calibration& calibration) {
  const std::string& name = options.path;
  FT_ASSIGN_OR_RETURN(const Cores cores, ResolveCores(options.cores));
  MachineFingerprint machine = FingerprintMachine(cores);
  if (calibration.models.draft.empty()) machine.draft_cores = calibration.machine.draft_cores;
  FT_RETURN_IF_ERROR(CheckMachine(calibration, machine, name));
  if (!options.models.given()) return {};
  ModelOptions models = options.models;
  FT_RETURN_IF_ERROR(models.ResolveDefaults());
  FT_ASSIGN_OR_RETURN(const ModelFingerprints fingerprints, FingerprintModels(models));
  return CheckModels(calibration, fingerprints, name);
}

// `whence`: what errors and the source's line call the calibration.
Result<PlanInput> InputOf(const Calibration& calibration, const PlanCalibrationOptions& options,
                          const std::string& whence) {
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
    return Invalid("{}: nothing was measured with --verify {}", whence, options.verifier);
  }
  std::ranges::stable_sort(input.settings, std::greater<>(), &PlanSetting::saguaro_c);
  input.source = fmt::format("{} ({}, target on {} cores, draft on {}), {} at T = {:g}", whence,
                             calibration.machine.cpu, calibration.machine.target_cores,
                             calibration.machine.draft_cores, options.verifier, temperature);
  if (temperature != options.temperature) {
    input.source += fmt::format(", the closest to {:g} that was measured", options.temperature);
  }
  input.source += ".";
  return input;
}

Result<PlanInput> FromCalibration(const PlanCalibrationOptions& options) {
  FT_ASSIGN_OR_RETURN(const Calibration calibration, ReadCalibration(options.path));
  FT_RETURN_IF_ERROR(CheckFingerprints(options, calibration));
  return InputOf(calibration, options, "From " + options.path);
}

}  // namespace

void AddPlanCalibrationOptions(CLI::App* app, PlanCalibrationOptions* options) {
  const OptionGroup add(app, "Calibration");
  add("--calibration", &options->path, "FILE",
      "Plan from this file of `foretoken calibrate`, of this machine; without it and without "
      "numbers, the models are measured here, for some seconds");
  add("--temp,--temperature", &options->temperature, "T",
      "Plan for this temperature; the closest measured one is taken (default 0)")
      ->check(Between(0.0, 100.0));
  add("--verify", &options->verifier, "V",
      "Plan for this verifier: shared-noise (default) or rejection")
      ->check(OneOf({"shared-noise", "rejection"}));
  for (const char* number : {"--preset", "--target-ms", "--draft-ms", "--sd-draft-ms",
                             "--acceptance", "--hit", "--hit-at-end", "--ngram-acceptance"}) {
    for (const char* measured : {"--calibration", "--temp", "--verify"}) {
      FindOption(app, measured)->excludes(FindOption(app, number));
    }
  }
  AddModelOptions(app, &options->models);
  AddCoreOptions(app, &options->cores);
}

Result<PlanInput> MeasurePlanInput(const PlanCalibrationOptions& options) {
  CalibrateOptions measured;
  measured.model = options.models;
  measured.cores = options.cores;
  measured.temperatures = fmt::format("{}", options.temperature);
  measured.verify = options.verifier;
  measured.saguaro_cs.clear();
  measured.prompts.limit = 2;
  measured.speculation.plan.lookahead = 6;
  measured.speculation.prefix_cache = false;
  measured.generation.stop.max_tokens = 48;
  FT_RETURN_IF_ERROR(measured.model.ResolveDefaults());
  FT_ASSIGN_OR_RETURN(const Calibration calibration, MeasureCalibration(measured));
  FT_ASSIGN_OR_RETURN(PlanInput input, InputOf(calibration, options,
                                               fmt::format("{} with {}, measured now",
                                                           measured.model.TargetSource().label(),
                                                           measured.model.DraftSource().label())));
  input.source += " `foretoken calibrate` measures longer and keeps what it finds.";
  return input;
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
      return Invalid("{}: '{}' is not a number or a range from 1 to {}", option, item, high);
    }
    for (int count = first; count <= last; ++count) counts.push_back(count);
  }
  if (counts.empty()) return Invalid("{} names no number", option);
  return counts;
}

Result<std::vector<std::pair<int, double>>> ParsePoints(std::string_view text,
                                                        std::string_view option) {
  std::vector<std::pair<int, double>> points;
  const std::vector<std::string> items = SplitList(text);
  for (std::string item : items) {
    if (items.size() == 1 && item.find(':') == std::string::npos) item.insert(0, "1:");
    const std::size_t colon = item.find(':');
    if (colon == std::string::npos) {
      return Invalid("{}: '{}' is not X:VALUE", option, item);
    }
    FT_ASSIGN_OR_RETURN(const double x, ParseFinite(item.substr(0, colon), option));
    FT_ASSIGN_OR_RETURN(const double y, ParseFinite(item.substr(colon + 1), option));
    if (x != std::floor(x) || x < 1 || x > 1e6) {
      return Invalid("{}: {:g} in '{}' is not a count", option, x, item);
    }
    points.emplace_back(static_cast<int>(x), y);
  }
  if (points.empty()) return Invalid("{}: no value is given", option);
  return points;
}

Result<std::vector<double>> ParseNumbers(std::string_view text, std::string_view option, double low,
                                         double high) {
  std::vector<double> values;
  for (const std::string& item : SplitList(text)) {
    FT_ASSIGN_OR_RETURN(const double value, ParseFinite(item, option));
    if (value < low || value > high) {
      return Invalid("{}: {:g} is not in {:g} .. {:g}", option, value, low, high);
    }
    values.push_back(value);
  }
  if (values.empty()) return Invalid("{}: no value is given", option);
  return values;
}

Result<std::vector<int>> PlanNumbers::ParseLookaheads(std::string_view usual) const {
  return ParseCounts("--lookahead", lookaheads.empty() ? usual : lookaheads, kMaxProposal);
}

bool PlanNumbers::given() const {
  return !(preset + target_ms + draft_ms + sd_draft_ms + acceptance + hit + hit_at_end +
           ngram_acceptance)
              .empty();
}

Result<SimulatorPreset> PlanNumbers::Resolve() const {
  const bool numbers =
      !(target_ms + draft_ms + sd_draft_ms + acceptance + hit + hit_at_end).empty();
  SimulatorPreset base{.description = "Numbers from the command line"};
  if (numbers && preset.empty()) {
    for (const auto& [option, value] :
         {std::pair("--target-ms", &target_ms), std::pair("--draft-ms", &draft_ms),
          std::pair("--acceptance", &acceptance), std::pair("--hit", &hit)}) {
      if (!value->empty()) continue;
      return Invalid(
          "{} is missing: give --target-ms, --draft-ms, --acceptance and --hit, or --preset for "
          "what is not given",
          option);
    }
  } else {
    FT_ASSIGN_OR_RETURN(base, FindSimulatorPreset(preset.empty() ? "paper-70b" : preset));
    if (numbers) base.description += ", with numbers from the command line";
  }
  CostModel& model = base.model;
  ProposerModel& draft = model.proposers[DrafterId::kModel];
  ProposerModel& ngram = model.proposers[DrafterId::kNgram];
  ProposerModel& random = model.proposers[DrafterId::kRandom];
  FT_RETURN_IF_ERROR(ParseTimes(target_ms, "--target-ms", &model.target));
  if (!target_ms.empty()) model.sequence_token_us = 0;
  FT_RETURN_IF_ERROR(ParseTimes(draft_ms, "--draft-ms", &model.first_draft().apart));
  if (!draft_ms.empty()) model.first_draft().on_target = model.first_draft().apart;
  FT_RETURN_IF_ERROR(ParseTimes(sd_draft_ms, "--sd-draft-ms", &model.first_draft().on_target));
  FT_RETURN_IF_ERROR(ParseRates(acceptance, "--acceptance", &draft.acceptance));
  FT_RETURN_IF_ERROR(ParseHits(hit, "--hit", &draft.curves.partial));
  if (!hit.empty()) {
    draft.curves.full = draft.curves.partial;
    random = {.acceptance = {0}, .curves = draft.curves};
  }
  FT_RETURN_IF_ERROR(ParseHits(hit_at_end, "--hit-at-end", &draft.curves.full));
  FT_RETURN_IF_ERROR(ParseRates(ngram_acceptance, "--ngram-acceptance", &ngram.acceptance));
  if (!ngram_acceptance.empty()) ngram.curves = random.curves;
  return base;
}

void AddPlanNumbers(CLI::App* app, PlanNumbers* numbers) {
  const OptionGroup add(app, "Numbers");
  add("--preset", &numbers->preset, "NAME",
      "Published numbers in place of measured ones: paper-70b (default of --simulate) or "
      "paper-32b; what is given below replaces them");
  add("--target-ms", &numbers->target_ms, "LIST",
      "Milliseconds of a target pass by its rows: 18.3, or 1:18.3,64:19.5,256:40");
  add("--draft-ms", &numbers->draft_ms, "LIST", "The same of a draft pass on a device of its own");
  add("--sd-draft-ms", &numbers->sd_draft_ms, "LIST",
      "The same on the target's device, for sd (default: as --draft-ms)");
  add("--acceptance", &numbers->acceptance, "LIST",
      "P(a draft token is accepted, given those before): 0.8, or by position: 0.9,0.85,0.8");
  add("--hit", &numbers->hit, "LIST",
      "P(the bonus token is prepared) at fan-outs 1, 2, 3 ...: 0.6,0.7,0.75");
  add("--hit-at-end", &numbers->hit_at_end, "LIST",
      "The same where all proposed tokens were accepted (default: as --hit)");
  add("--ngram-acceptance", &numbers->ngram_acceptance, "LIST",
      "As --acceptance, of prompt lookup's tokens (for --fallback ngram)");
  add("-k,--lookahead", &numbers->lookaheads, "LIST",
      "Proposal lengths K to choose among (default 1-12; --simulate: 2,4,6,8)");
  add("--fallback", &numbers->fallback, "F",
      "On a miss: jit, ngram, random, none or auto (default: the best)");
  add("-b,--batch", &numbers->batch, "N", "Sequences of a target (default: as each view suggests)")
      ->check(Between(1, 4096));
  add("--context", &numbers->context, "N", "Tokens of each sequence (default 512)")
      ->check(Between(0.0, 1e7));
}

}  // namespace foretoken
