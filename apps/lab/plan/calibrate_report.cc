#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "apps/foretoken/common/html_page.h"
#include "apps/foretoken/common/report_chart.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/common/time_units.h"
#include "apps/lab/plan/calibrate.h"
#include "core/prediction/plan_search.h"

namespace foretoken {
namespace {

constexpr int kPlottedLookahead = 6;
constexpr double kPlottedContext = 256;

std::string SettingName(const CalibratedSetting& setting) {
  std::string name = fmt::format("T = {:g}", setting.temperature);
  if (setting.verifier != "shared-noise") {
    name += fmt::format(", {}, C = {:g}", setting.verifier, setting.saguaro_c);
  }
  return name;
}

// The settings with a draft at C = 1: C below 1 has plots of its own.
std::vector<CalibratedSetting> Plotted(const Calibration& calibration) {
  std::vector<CalibratedSetting> plotted = calibration.settings;
  std::erase_if(plotted, [](const CalibratedSetting& setting) {
    return !setting.draft().measured() || setting.saguaro_c != 1;
  });
  return plotted;
}

std::string LawText(const PowerLaw& law) { return fmt::format("{:.2f} F^-{:.2f}", law.c, law.r); }

double HitAt(const std::vector<double>& hits, std::size_t fanout) {
  return hits.size() < fanout ? 0 : hits[fanout - 1];
}

// Miss rates and their fit as two series of a color.
void AddMisses(const std::string& name, int color, const std::vector<double>& hits,
               std::vector<ChartSeries>* series) {
  const PowerLaw law = FitPowerLaw(hits);
  ChartSeries measured{.name = name, .color = color};
  ChartSeries fit{.name = name + ": " + LawText(law), .color = color};
  for (std::size_t i = 0; i < hits.size(); ++i) {
    const auto fanout = static_cast<double>(i + 1);
    measured.points.emplace_back(fanout, 1 - hits[i]);
    fit.points.emplace_back(fanout, law.Miss(fanout));
  }
  series->push_back(std::move(measured));
  series->push_back(std::move(fit));
}

std::vector<ChartCard> MissCards(const Calibration& calibration) {
  std::vector<ChartCard> cards;
  for (const CalibratedSetting& setting : Plotted(calibration)) {
    ChartCard card{.heading = SettingName(setting),
                   .note = "Miss rate of the speculation cache (Figure 3)",
                   .x_label = "fan-out F",
                   .logarithmic_x = true};
    const ProposerMeasurement& ngram = setting.proposers[DrafterId::kNgram];
    AddMisses("k < K", 0, setting.draft().hit_partial, &card.series);
    AddMisses("k = K", 1, setting.draft().hit_full, &card.series);
    if (ngram.measured()) {
      AddMisses("after prompt lookup, k < K", 2, ngram.hit_partial, &card.series);
    }
    cards.push_back(std::move(card));
  }
  return cards;
}

ChartCard AcceptanceCard(const Calibration& calibration) {
  ChartCard card{.heading = "Acceptance by position",
                 .note = "P(token accepted, given that all before it were)",
                 .x_label = "position"};
  int color = 0;
  for (const CalibratedSetting& setting : Plotted(calibration)) {
    ChartSeries series{.name = SettingName(setting), .color = color++ % kReportColors};
    for (std::size_t k = 0; k < setting.draft().acceptance.size(); ++k) {
      series.points.emplace_back(static_cast<double>(k + 1), setting.draft().acceptance[k]);
    }
    card.series.push_back(std::move(series));
  }
  return card;
}

// Figure 4: over C, for every temperature that rejection verification was measured at.
std::vector<ChartCard> SaguaroCards(const Calibration& calibration) {
  std::map<double, ChartCard> by_temperature;
  for (const CalibratedSetting& setting : calibration.settings) {
    if (setting.verifier != "rejection" || !setting.draft().measured()) continue;
    ChartCard& card = by_temperature[setting.temperature];
    if (card.series.empty()) {
      card = {.heading = fmt::format("T = {:g}", setting.temperature),
              .note = "Acceptance of the first token and hit rate at F = 3 (Figure 4)",
              .x_label = "C of Definition 14",
              .series = {{"acceptance", 0}, {"hits, k < K", 1}, {"hits, k = K", 2}}};
    }
    card.series[0].points.emplace_back(setting.saguaro_c, setting.draft().acceptance[0]);
    card.series[1].points.emplace_back(setting.saguaro_c, HitAt(setting.draft().hit_partial, 3));
    card.series[2].points.emplace_back(setting.saguaro_c, HitAt(setting.draft().hit_full, 3));
  }
  std::vector<ChartCard> cards;
  for (auto& [temperature, card] : by_temperature) {
    for (ChartSeries& series : card.series) std::ranges::sort(series.points);
    cards.push_back(std::move(card));
  }
  return cards;
}

// Figure 5: what each fallback makes of SSD as the batch grows.
std::vector<ChartCard> FallbackCards(const Calibration& calibration) {
  std::vector<ChartCard> cards;
  for (const CalibratedSetting& setting : Plotted(calibration)) {
    const CostModel model = ToCostModel(calibration, setting);
    ChartCard card{.heading = SettingName(setting),
                   .note = "Predicted tokens/s of a sequence by fallback (Figure 5)",
                   .x_label = "batch size",
                   .logarithmic_x = true};
    int color = 0;
    for (const Fallback fallback :
         {Fallback::kJit, Fallback::kNgram, Fallback::kRandom, Fallback::kNone}) {
      const ProposerModel* proposer = model.proposer(fallback);
      if (proposer != nullptr && !proposer->measured()) continue;
      const SpeculationPlan plan =
          PlanSsd(model, kPlottedLookahead, 3 * (kPlottedLookahead + 1), fallback);
      ChartSeries series{.name = std::string(FallbackName(fallback)), .color = color++};
      if (!CanPredict(model, plan)) continue;
      for (const int batch : {1, 2, 4, 8, 16, 32}) {
        const Prediction prediction =
            Predict(model, plan, {.batch = batch, .context = kPlottedContext});
        series.points.emplace_back(batch, prediction.tokens_per_second / batch);
      }
      card.series.push_back(std::move(series));
    }
    cards.push_back(std::move(card));
  }
  return cards;
}

ChartCard TimesCard(const Calibration& calibration) {
  ChartCard card{.heading = "Passes",
                 .note = "Milliseconds of a pass",
                 .x_label = "rows",
                 .logarithmic_x = true};
  int color = 0;
  const auto add = [&](std::string_view name, const TimeTable& table) {
    for (const int context : table.contexts()) {
      ChartSeries series{.name = fmt::format("{}, context {}", name, context), .color = color++};
      for (const int rows : table.rows()) {
        series.points.emplace_back(rows, table.us(rows, context) / kUsPerMs);
      }
      card.series.push_back(std::move(series));
    }
  };
  add("target", calibration.times.target);
  add("draft, own cores", calibration.times.first_draft().apart);
  add("draft, target's cores", calibration.times.first_draft().on_target);
  return card;
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

std::string CalibrationPage(const Calibration& calibration, std::string_view title) {
  std::string body = fmt::format("<h1>{}</h1>", EscapeHtml(title));
  body += CardSection("Cache misses against fan-out",
                      "Dots are measured, with all candidates prepared in time; the second line of "
                      "each pair is the fit c F^-r.",
                      MissCards(calibration));
  body += CardSection("Saguaro sampling", "What C buys in hits and costs in acceptance.",
                      SaguaroCards(calibration));
  body += CardSection("Fallbacks", "Predicted from this calibration; K = 6, 21 branches.",
                      FallbackCards(calibration));
  body += CardSection("Acceptance and times", "",
                      {AcceptanceCard(calibration), TimesCard(calibration)});
  return HtmlPage(title, body);
}

}  // namespace foretoken
