#include "apps/lab/plan/calibrator.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include "apps/foretoken/common/terminal.h"
#include "apps/lab/plan/calibrate.h"
#include "apps/lab/plan/fingerprints.h"
#include "base/text/parse_number.h"
#include "door/api/study.h"

namespace foretoken {
namespace {

constexpr double kMostTemperature = 4;
// Passes in which the speculator prepares everything, with a margin for trunk rows.
constexpr double kPauseMargin = 1.3;
constexpr int kRowsPerDraftPass = 32;
// Over the passes' tables.
constexpr int kCalibrationSweeps = 8;

// The numbers of a list from 0 to `most`, each once, in ascending order; may be none.
Result<std::vector<double>> ParseAscending(std::string_view option, std::string_view what,
                                           std::string_view text, double most) {
  std::vector<double> values;
  for (const std::string& item : SplitList(text)) {
    double value = -1;
    if (!ParseNumber(item, &value) || !(value >= 0) || value > most) {
      return Invalid("{} '{}': '{}' is not {} from 0 to {:g}", option, text, item, what, most);
    }
    values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

class Calibrator {
 public:
  explicit Calibrator(CalibrateOptions options) : options_(std::move(options)) {}
  Result<Calibration> Run() {
    FT_RETURN_IF_ERROR(Load());
    FT_RETURN_IF_ERROR(EncodePrompts());
    FT_RETURN_IF_ERROR(Measure());
    return std::move(calibration_);
  }

 private:
  Status Load() {
    FT_ASSIGN_OR_RETURN(temperatures_, ParseAscending("--temps", "a temperature",
                                                      options_.temperatures, kMostTemperature));
    if (temperatures_.empty()) {
      return InvalidInput("--temps names no temperature; write it like 0,1");
    }
    FT_ASSIGN_OR_RETURN(saguaro_cs_, ParseAscending("--saguaro-cs", "a C", options_.saguaro_cs, 1));
    std::erase(saguaro_cs_, 1);  // Measured in any case.
    if (!measures("rejection")) saguaro_cs_.clear();
    FT_RETURN_IF_ERROR(options_.model.ResolveDefaults());
    if (!options_.model.has_draft()) {
      return InvalidInput(
          "measuring a pair needs a draft model; name its folder or GGUF file with --draft");
    }
    FT_ASSIGN_OR_RETURN(cores_, ResolveCores(options_.cores));
    if (cores_.all.size() == cores_.target.size()) {
      return InvalidInput(
          "mode ssd is measured too, whose draft needs a core of its own: give it one with "
          "--draft-cores that --target-cores leaves free");
    }
    FT_ASSIGN_OR_RETURN(calibration_.models, FingerprintModels(options_.model));
    calibration_.machine = FingerprintMachine(cores_);
    FT_ASSIGN_OR_RETURN(target_, LoadTarget(options_.model, cores_.target));
    return {};
  }

  Status EncodePrompts() {
    FT_ASSIGN_OR_RETURN(
        const std::vector<EncodedSet> sets,
        EncodeSets(options_.prompts, *target_->tokenizer(), target_->facts().max_context,
                   options_.generation.stop.max_tokens));
    for (const EncodedSet& encoded : sets) {
      task_.prompts.insert(task_.prompts.end(), encoded.prompts.begin(), encoded.prompts.end());
    }
    return {};
  }

  Result<std::unique_ptr<Engine>> MakeMeasuringEngine(Verification verification,
                                                      std::span<const Mode> modes) {
    FT_ASSIGN_OR_RETURN(EngineOptions wanted,
                        options_.EngineFor(modes, cores_, /*batch=*/1, /*context=*/0));
    wanted.verification = verification;
    wanted.max_lookahead = *options_.speculation.plan.lookahead;
    wanted.max_cache_budget = kMaxFanout * (*options_.speculation.plan.lookahead + 1);
    return OpenForStudy(target_, wanted, {.measuring_sweeps = kCalibrationSweeps});
  }

  void SetPause() {
    const int K = *options_.speculation.plan.lookahead;
    const double rows = kMaxFanout * (K + 1) * static_cast<double>(K);
    const double passes = rows / kRowsPerDraftPass + K + 1;
    const double pass_us =
        calibration_.times.first_draft().apart.us(kRowsPerDraftPass, task_.prompts[0].size());
    task_.pause_ns = static_cast<std::int64_t>(kPauseMargin * passes * pass_us * 1e3);
  }

  Status TakeRates() {
    FT_ASSIGN_OR_RETURN(Calibration rates, ReadCalibration(options_.rates_of));
    FT_RETURN_IF_ERROR(CheckModels(rates, calibration_.models, options_.rates_of));
    calibration_.settings = std::move(rates.settings);
    return {};
  }

  Status MeasureSharedNoise() {
    // Mode auto is there for the times that its planner starts from.
    constexpr std::array kOffered = {Mode::kSsd, Mode::kAr, Mode::kNgram, Mode::kSd, Mode::kAuto};
    std::unique_ptr<Engine> engine;
    {
      const ProgressBar measuring("Measuring passes", 0);
      FT_ASSIGN_OR_RETURN(engine, MakeMeasuringEngine(Verification::kSharedNoise, kOffered));
    }
    calibration_.times = TimesOf(*engine).costs;
    SetPause();
    progress_->SetLabel("Measuring times");
    FT_RETURN_IF_ERROR(MeasureOverheads(*engine, task_, &calibration_.times));
    if (!measures("shared-noise")) return {};
    for (const double temperature : temperatures_) {
      progress_->SetLabel(fmt::format("Measuring acceptance and hits at T = {:g}", temperature));
      task_.sampling.temperature = static_cast<float>(temperature);
      FT_ASSIGN_OR_RETURN(CalibratedSetting setting,
                          MeasureRates(*engine, task_, calibration_.times));
      setting.temperature = temperature;
      calibration_.settings.push_back(std::move(setting));
    }
    return {};
  }

  Status MeasureRejection() {
    constexpr std::array kOffered = {Mode::kSsd, Mode::kNgram};
    FT_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                        MakeMeasuringEngine(Verification::kRejection, kOffered));
    for (const double temperature : temperatures_) {
      task_.sampling.temperature = static_cast<float>(temperature);
      progress_->SetLabel(fmt::format("Measuring rejection at T = {:g}", temperature));
      // At temperature 0 nothing is drawn: the two ways to verify are one, and C changes nothing.
      CalibratedSetting setting;
      if (temperature == 0 && measures("shared-noise")) {
        setting = calibration_.settings.front();
      } else {
        FT_ASSIGN_OR_RETURN(setting, MeasureRates(*engine, task_, calibration_.times));
      }
      setting.temperature = temperature;
      setting.verifier = VerificationName(Verification::kRejection);
      calibration_.settings.push_back(setting);
      if (temperature == 0) continue;
      for (const double c : saguaro_cs_) {
        progress_->SetLabel(
            fmt::format("Measuring rejection at T = {:g}, C = {:g}", temperature, c));
        FT_ASSIGN_OR_RETURN(CalibratedSetting saguaro, MeasureSaguaro(*engine, task_, c));
        saguaro.temperature = temperature;
        ProposerMeasurement draft = saguaro.draft();
        draft.us = setting.draft().us;
        saguaro.proposers = setting.proposers;  // Nothing else follows C.
        saguaro.proposers[DrafterId::kModel] = std::move(draft);
        calibration_.settings.push_back(std::move(saguaro));
      }
    }
    return {};
  }

  Status Measure() {
    task_.lookahead = *options_.speculation.plan.lookahead;
    task_.stop = options_.generation.stop;
    task_.sampling = options_.generation.sampling;
    constexpr std::size_t kRunsPerTemperature = 3;
    if (!options_.rates_of.empty()) FT_RETURN_IF_ERROR(TakeRates());
    const std::size_t drawn = temperatures_.size() - (temperatures_.front() == 0 ? 1 : 0);
    std::size_t runs = 2;
    if (measures("shared-noise")) runs += kRunsPerTemperature * temperatures_.size();
    if (measures("rejection")) {
      const std::size_t measured = measures("shared-noise") ? drawn : temperatures_.size();
      runs += kRunsPerTemperature * measured + saguaro_cs_.size() * drawn;
    }
    ProgressBar progress("Measuring", static_cast<std::int64_t>(task_.prompts.size() * runs));
    progress_ = &progress;
    task_.on_prompt = [&progress] { progress.Advance(); };
    FT_RETURN_IF_ERROR(MeasureSharedNoise());
    if (measures("rejection")) FT_RETURN_IF_ERROR(MeasureRejection());
    return {};
  }

  // Whether rates are measured under that way to verify.
  bool measures(std::string_view how) const {
    return options_.rates_of.empty() && (options_.verify == "both" || options_.verify == how);
  }

  CalibrateOptions options_;
  std::vector<double> temperatures_;
  std::vector<double> saguaro_cs_;  // Below 1, descending.
  Cores cores_;
  std::shared_ptr<LanguageModel> target_;
  CalibrationTask task_;
  Calibration calibration_;
  ProgressBar* progress_ = nullptr;  // While measuring.
};

}  // namespace

Result<Calibration> MeasureCalibration(const CalibrateOptions& options) {
  return Calibrator(options).Run();
}

}  // namespace foretoken
