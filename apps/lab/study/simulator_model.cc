#include "apps/lab/study/simulator_model.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "apps/lab/study/roofline.h"
#include "base/check.h"

namespace foretoken {
namespace {

constexpr double kUsPerSecond = 1e6;

// What a published pair did at batch 1 and temperature 0, and what it takes to fit it.
struct PublishedPair {
  std::string_view name;
  std::string_view description;
  ModelShape target;
  ModelShape draft;
  double ar_us;  // The time of a token, measured.
  // The time of a draft pass on one device over one sequence's rows at K=6, F=3.
  double draft_us;
  double sd_draft_us;  // The time of a draft pass on the target's devices.
  double acceptance;   // Fitted.
};

constexpr std::array kPairs = {
    PublishedPair{
        .name = "paper-70b",
        .description = "Llama-3.1-70B on 4 H100s, Llama-3.2-1B on 1, as published (fitted)",
        .target = {80, 8192, 64, 8, 128, 28672, 128256},
        .draft = {16, 2048, 32, 8, 64, 8192, 128256},
        .ar_us = 18282,
        .draft_us = 3000,
        .sd_draft_us = 2800,
        .acceptance = 0.93},
    PublishedPair{.name = "paper-32b",
                  .description = "Qwen3-32B on 4 H100s, Qwen3-0.6B on 1, as published (fitted)",
                  .target = {64, 5120, 64, 8, 128, 25600, 151936},
                  .draft = {28, 1024, 16, 8, 128, 3072, 151936},
                  .ar_us = 11261,
                  .draft_us = 2500,
                  .sd_draft_us = 2500,
                  .acceptance = 0.77},
};

// The device of both pairs.
constexpr DeviceRoof kH100 = {.flops = 989.5e12, .bytes_per_second = 3.35e12};
constexpr int kTargetDevices = 4;
constexpr int kFittedRows = 21;     // (K + 1) F
constexpr double kDraftRowUs = 10;  // Beyond the roofline: the attention with custom masks.
constexpr PowerLaw kAfterPrimary = {.c = 0.25, .r = 0.83};
constexpr PowerLaw kAfterBackup = {.c = 0.45, .r = 0.74};

// Roofline times of passes over 1, 2, 4 ... rows that attend to one sequence, plus a constant and a
// cost per row.
TimeTable Table(const ModelShape& shape, int ranks, double base_us, double row_us) {
  constexpr std::array kContexts = {128, 1024, 8192, 65536};
  std::vector<int> rows;
  std::vector<double> times;
  for (int i = 0; i < TimeTable::kMaxRowPoints; ++i) {
    rows.push_back(1 << i);
    for (const int context : kContexts) {
      const PassShape pass = {.speculation = static_cast<double>(rows.back()),
                              .context = static_cast<double>(context),
                              .ranks = ranks};
      times.push_back(base_us + row_us * rows.back() +
                      kUsPerSecond * RooflinePass(shape, pass, kH100).total());
    }
  }
  Result<TimeTable> table = TimeTable::Make(rows, kContexts, times);
  FT_CHECK(table.ok(), "{}", table.error().message);
  return *std::move(table);
}

// The table whose pass over `rows` rows takes `us`.
TimeTable FittedTable(const ModelShape& shape, int ranks, double row_us, int rows, double us) {
  const double bare = Table(shape, ranks, 0, row_us).us(rows, 0);
  return Table(shape, ranks, std::max(0.0, us - bare), row_us);
}

CostModel ModelOf(const PublishedPair& pair) {
  constexpr double kContext = 512;
  CostModel model;
  model.draft_rows_per_pass = 0;  // As the paper's.
  model.target = FittedTable(pair.target, kTargetDevices, 0, 1, pair.ar_us);
  model.first_draft().apart = FittedTable(pair.draft, 1, kDraftRowUs, kFittedRows, pair.draft_us);
  model.first_draft().on_target = FittedTable(pair.draft, kTargetDevices, 0, 1, pair.sd_draft_us);
  // Every further sequence's keys and values are loaded too.
  const PassShape alone = {.context = kContext, .ranks = kTargetDevices};
  model.sequence_token_us =
      kUsPerSecond * RooflinePass(pair.target, alone, kH100).attention / kContext;
  const auto propose = [&model](DrafterId id, double acceptance, const PowerLaw& law) {
    const HitCurve curve = HitCurve::FromPowerLaw(law);
    model.proposers[id] = {.acceptance = {acceptance}, .curves = {curve, curve}};
  };
  propose(DrafterId::kModel, pair.acceptance, kAfterPrimary);
  propose(DrafterId::kRandom, 0, kAfterBackup);
  return model;
}

std::vector<double> AcceptanceOf(const ProposerModel& proposer) {
  std::vector<double> acceptance(proposer.acceptance.begin(), proposer.acceptance.end());
  if (acceptance.empty()) return {0};
  acceptance[0] *= proposer.coverage;
  if (acceptance.size() == 1) acceptance.push_back(proposer.acceptance[0]);
  return acceptance;
}

}  // namespace

SimulatorOptions SimulatorFor(const CostModel& model, const SpeculationPlan& plan,
                              const Workload& load) {
  FT_CHECK(CanPredict(model, plan), "mode {} is not predictable", ModeName(plan.mode));
  const bool ssd = plan.mode.during();
  SimulatorOptions options;
  options.mode = plan.mode;
  options.batch = load.batch;
  options.lookahead = plan.lookahead;
  options.primary = ssd ? plan.primary : UniformFanout(0, plan.lookahead);
  options.after_fallback = ssd ? plan.after_fallback : UniformFanout(0, plan.lookahead);
  options.fallback = ssd ? plan.fallback : Fallback::kNone;
  options.after_primary = {AcceptanceOf(model.draft_model()), model.draft_model().curves};
  options.after_backup = {{0}, model.draft_model().curves};
  const ProposerModel* backup = model.proposer(options.fallback);
  if (backup != nullptr && backup != &model.draft_model()) {
    options.after_backup = {AcceptanceOf(*backup), backup->curves};
    options.backup_us = backup->us;
  }
  options.target_us = [model, load, factor = ssd ? model.target_contention : 1](int rows) {
    const double fixed_us = model.host_us + model.FurtherSequencesUs(load.batch, load.context);
    return factor * (model.target.us(rows, load.context) + fixed_us + model.host_row_us * rows);
  };
  options.draft_us = [model, context = load.context](int rows) {
    return model.draft_contention * model.first_draft().apart.us(rows, context) +
           model.draft_model().us * rows;
  };
  options.draft_rows_per_pass = model.draft_rows_per_pass;
  options.sd_draft_us = [table = model.first_draft().on_target, context = load.context](int rows) {
    return table.us(rows, context);
  };
  return options;
}

Result<SimulatorPreset> FindSimulatorPreset(std::string_view name) {
  std::vector<std::string_view> known;
  for (const PublishedPair& pair : kPairs) {
    known.push_back(pair.name);
    if (pair.name != name) continue;
    return SimulatorPreset{.description = std::string(pair.description),
                           .model = ModelOf(pair),
                           .target_devices = kTargetDevices};
  }
  return Invalid("there is no preset '{}'; known presets are {}", name, fmt::join(known, ", "));
}

}  // namespace foretoken
