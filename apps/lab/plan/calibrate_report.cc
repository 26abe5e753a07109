#include <fmt/core.h>

#include "apps/foretoken/common/terminal.h"
#include "apps/lab/plan/calibrate.h"
#include "core/prediction/plan_search.h"

namespace foretoken {
namespace {

constexpr int kPredictedLookahead = 6;
constexpr double kPredictedContext = 256;

std::string LawText(const PowerLaw& law) { return fmt::format("{:.2f} F^-{:.2f}", law.c, law.r); }

Json LawJson(const std::vector<double>& hits) {
  const PowerLaw law = FitPowerLaw(hits);
  return {{"c", law.c}, {"r", law.r}};
}

// What each fallback makes of SSD as the batch grows (Figure 5): predicted tokens/s of a sequence.
Json FallbacksJson(const Calibration& calibration, const CalibratedSetting& setting) {
  const CostModel model = ToCostModel(calibration, setting);
  Json points = Json::array();
  for (const Fallback fallback :
       {Fallback::kJit, Fallback::kNgram, Fallback::kRandom, Fallback::kNone}) {
    const ProposerModel* proposer = model.proposer(fallback);
    if (proposer != nullptr && !proposer->measured()) continue;
    const SpeculationPlan plan =
        PlanSsd(model, kPredictedLookahead, 3 * (kPredictedLookahead + 1), fallback);
    if (!CanPredict(model, plan)) continue;
    for (const int batch : {1, 2, 4, 8, 16, 32}) {
      const Prediction prediction =
          Predict(model, plan, {.batch = batch, .context = kPredictedContext});
      points.push_back({{"fallback", FallbackName(fallback)},
                        {"batch", batch},
                        {"tokens_per_s", prediction.tokens_per_second / batch}});
    }
  }
  return points;
}

}  // namespace

std::string CalibrationTable(const Calibration& calibration) {
  TextTable table({"T", "verified by", "rounds", "accepted at 1", "hit k<K F=1", "F=3", "F=8",
                   "hit k=K F=3", "miss k<K", "miss k=K"});
  for (const CalibratedSetting& setting : calibration.settings) {
    const ProposerMeasurement& draft = setting.draft();
    if (!draft.measured()) continue;
    const auto rate = [](double value) { return fmt::format("{:.3f}", value); };
    const auto hit = [&rate](const std::vector<double>& hits, std::size_t fanout) {
      return hits.size() < fanout ? std::string("-") : rate(hits[fanout - 1]);
    };
    std::string verifier = setting.verifier;
    if (verifier == "rejection") verifier += fmt::format(", C = {:g}", setting.saguaro_c);
    table.Add({fmt::format("{:g}", setting.temperature), verifier, std::to_string(draft.rounds),
               rate(draft.acceptance[0]), hit(draft.hit_partial, 1), hit(draft.hit_partial, 3),
               hit(draft.hit_partial, 8), hit(draft.hit_full, 3),
               LawText(FitPowerLaw(draft.hit_partial)), LawText(FitPowerLaw(draft.hit_full))});
  }
  return table.Render();
}

Json CalibrationReport(const Calibration& calibration, std::string_view title) {
  Json report = Json::Parse(FormatCalibration(calibration));
  report["kind"] = "calibration";
  report["title"] = title;
  for (std::size_t i = 0; i < calibration.settings.size(); ++i) {
    const CalibratedSetting& setting = calibration.settings[i];
    Json& entry = report["settings"][i];
    for (const DrafterId drafter : {DrafterId::kModel, DrafterId::kNgram}) {
      const ProposerMeasurement& measured = setting.proposers[drafter];
      if (!measured.measured()) continue;
      Json& proposer = entry[InfoOf(drafter).name];
      proposer["law_partial"] = LawJson(measured.hit_partial);
      proposer["law_full"] = LawJson(measured.hit_full);
    }
    if (setting.draft().measured() && setting.saguaro_c == 1) {
      entry["fallbacks"] = FallbacksJson(calibration, setting);
    }
  }
  return report;
}

}  // namespace foretoken
