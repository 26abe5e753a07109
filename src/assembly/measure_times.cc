#include "assembly/measure_times.h"

#include <algorithm>
#include <array>

#include "draft/retrieval/speculation_length.h"
#include "model/measure/pass_times.h"

namespace foretoken {
namespace {

// Row counts and contexts that the planner starts from, and how long a table may take.
// Kernels work on tiles of rows, so times have steps: with AVX2 a fifth row takes as long as an
// eighth, and a line from 4 to 8 would say 20 % less (from 12 to 16, for 13, 12 %).
// Proposals of a large batch make more rows: continued from 16 and 32, passes of 112 seemed
// anything from as long as they are to a quarter longer, by what noise there was in 32.
constexpr std::array kMeasuredRows = {1,  2,  3,  4,  5,  6,  7,  8,  9, 12,
                                      13, 16, 17, 20, 21, 24, 25, 32, 64};
static_assert(kMeasuredRows.size() <= TimeTable::kMaxRowPoints);
constexpr int kShortContext = 64;
constexpr int kLongContext = 1024;
// Long enough for a sequence's keys and values to show beside the rest of a pass.
constexpr int kSequenceContext = 256;
constexpr std::int64_t kMeasuringNs = 900'000'000;
constexpr std::int64_t kMeasuringManyRowsNs = 300'000'000;  // More, where a batch has so many.

TimeTable TableOf(const PassTimes& times) {
  return TimeTable::Make(times.rows, times.contexts, times.us).value();
}

// Attention hardly counts behind so short a context.
PassTimes MeasureRows(const LoadedModel& target) {
  // With AVX2 a fifth row takes 2.65 times one and a fourth 1.47: the steps must be seen.
  constexpr std::array kRows = {1, 2, 3, 4, 5, 8, 9, 12, 13, 16, 17, 24, 32, 64, 128, 256};
  constexpr std::array kContexts = {kShortContext};
  return target.device->Run(
      [&] { return MeasurePassTimes(*target.model, kRows, kContexts, kMeasuringNs); });
}

// All, or all but the most where a pass never has so many.
std::span<const int> MeasuredRows(const TimesNeeded& needed) {
  const std::span<const int> rows = kMeasuredRows;
  const std::span<const int> fewer = rows.first(rows.size() - 1);
  return needed.most_rows <= fewer.back() ? fewer : rows;
}

TimeTable MeasureTable(Model& model, Device& device, const TimesNeeded& needed) {
  const std::span<const int> rows = MeasuredRows(needed);
  const bool all = rows.size() == kMeasuredRows.size();
  const std::int64_t budget_ns = kMeasuringNs + (all ? kMeasuringManyRowsNs : 0);
  const int longest = model.config().max_positions - rows.back();
  const std::array contexts = {kShortContext,
                               std::max(kShortContext + 1, std::min(kLongContext, longest))};
  return device.Run([&] {
    return TableOf(
        MeasurePassTimes(model, rows, contexts, budget_ns * needed.sweeps, needed.sweeps));
  });
}

void MeasureCosts(const EngineModels& models, const TimesNeeded& needed, CostModel* costs) {
  Device& device = *models.target->device;
  Model& target = *models.target->model;
  const auto unknown = [](const TimeTable& table) { return table.rows().empty(); };
  if (unknown(costs->target)) {
    costs->target = MeasureTable(target, device, needed);
    costs->sequence_token_us =
        device.Run([&] { return MeasureSequenceTokenUs(target, kSequenceContext); });
  }
  if (models.draft_on_target != nullptr && unknown(costs->draft_on_target)) {
    costs->draft_on_target = MeasureTable(*models.draft_on_target->model, device, needed);
  }
  if (models.draft != nullptr && unknown(costs->draft)) {
    const LoadedModel& draft = *models.draft;
    costs->draft = MeasureTable(*draft.model, *draft.device, needed);
    const Contention contention = MeasureContention(
        {&target, &device}, {draft.model.get(), draft.device.get()}, needed.sweeps);
    costs->target_contention = contention.first;
    costs->draft_contention = contention.second;
  }
}

}  // namespace

int MostMeasuredRows(const TimesNeeded& needed) { return MeasuredRows(needed).back(); }

MeasuredTimes MeasureTimes(const EngineModels& models, const TimesNeeded& needed,
                           MeasuredTimes known) {
  if (needed.rows && known.row_times.rows().empty()) {
    const PassTimes times = MeasureRows(*models.target);
    known.row_times = TableOf(times);
    known.knee_rows = KneeRows(times.rows, times.us);
  }
  if (needed.costs) MeasureCosts(models, needed, &known.costs);
  return known;
}

}  // namespace foretoken
