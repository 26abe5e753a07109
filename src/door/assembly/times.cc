#include "door/assembly/times.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/files/read_file.h"
#include "base/files/replace_file.h"
#include "base/numbers/sha256.h"
#include "base/threads/cores.h"
#include "core/draft/retrieval/speculation_length.h"
#include "core/model/measure/pass_times.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

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
// A third context, where sequences may be so long: a line from 64 to 1024 tells little of it, since
// keys and values then come from memory that lay in a cache before. Beyond it the line goes on.
constexpr int kVeryLongContext = 8192;
// Long enough for a sequence's keys and values to show beside the rest of a pass.
constexpr int kSequenceContext = 256;
constexpr std::int64_t kMeasuringNs = 900'000'000;
constexpr std::int64_t kMeasuringManyRowsNs = 300'000'000;  // More, where a batch has so many.

TimeTable TableOf(const PassTimes& times) {
  return TimeTable::Make(times.rows, times.contexts, times.us).value();
}

// Ascending; none that the model, whose passes have so many rows at most, or the engine is too
// short for.
std::vector<int> MeasuredContexts(const Model& model, int most_rows, const TimesNeeded& needed) {
  const int longest = model.config().max_positions - most_rows;
  std::vector<int> contexts = {kShortContext,
                               std::max(kShortContext + 1, std::min(kLongContext, longest))};
  if (std::min(longest, needed.context) >= kVeryLongContext) contexts.push_back(kVeryLongContext);
  return contexts;
}

// The measured times behind the shortest context.
std::vector<double> ShortestContext(const TimeTable& times) {
  std::vector<double> us;
  for (std::size_t i = 0; i < times.times().size(); i += times.contexts().size()) {
    us.push_back(times.times()[i]);
  }
  return us;
}

TimeTable MeasureRows(const LoadedModel& target, const TimesNeeded& needed) {
  // With AVX2 a fifth row takes 2.65 times one and a fourth 1.47: the steps must be seen.
  constexpr std::array kRows = {1, 2, 3, 4, 5, 8, 9, 12, 13, 16, 17, 24, 32, 64, 128, 256};
  // Attention hardly counts where contexts are short.
  std::vector<int> contexts = {kShortContext};
  if (MeasuredContexts(*target.model, kRows.back(), needed).back() == kVeryLongContext) {
    contexts.push_back(kVeryLongContext);
  }
  return target.device->Run(
      [&] { return TableOf(MeasurePassTimes(*target.model, kRows, contexts, kMeasuringNs)); });
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
  const std::vector<int> contexts = MeasuredContexts(model, rows.back(), needed);
  return device.Run([&] {
    return TableOf(
        MeasurePassTimes(model, rows, contexts, budget_ns * needed.sweeps, needed.sweeps));
  });
}

DraftPassShape PassShapeOf(const ModelConfig& draft) {
  const ParallelSpec& parallel = draft.parallel;
  return {.positions = parallel.positions,
          .block = parallel.block,
          .from_root = draft.feature.there() && !draft.feature.in_rows()};
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
  for (const DrafterId id : kDrafterIds) {
    const LoadedDraft& loaded = models.drafts[id];
    DraftTimes& times = costs->drafts[id];
    if (loaded.on_target != nullptr && unknown(times.on_target)) {
      times.on_target = MeasureTable(*loaded.on_target->model, device, needed);
      times.pass = PassShapeOf(loaded.on_target->model->config());
    }
    if (loaded.apart == nullptr || !unknown(times.apart)) continue;
    const LoadedModel& draft = *loaded.apart;
    times.apart = MeasureTable(*draft.model, *draft.device, needed);
    times.pass = PassShapeOf(draft.model->config());
    const Contention contention = MeasureContention(
        {&target, &device}, {draft.model.get(), draft.device.get()}, needed.sweeps);
    costs->target_contention = contention.first;
    costs->draft_contention = contention.second;
  }
}

constexpr std::string_view kFormat = "foretoken-times";
constexpr int kVersion = 2;
constexpr std::size_t kMaxFileBytes = 1 << 20;
constexpr int kMaxDay = 1 << 20;
constexpr int kMaxKneeRows = 1 << 16;
// No pass is as short: a planner that believed it would plan for nothing else.
constexpr double kLeastUs = 0.01;
// Measured again after so many days: what is never seen while decoding (row counts that no plan
// uses, say) is not refreshed, and may have been measured in a slow moment.
constexpr int kKeptDays = 30;
// One run may have been beside other work from its start to its end. So half of the way (of the
// logarithm) is gone to what it saw, and nothing it saw counts for more than so many times as long
// or short: it changes times by 22 % at most, and three runs of another speed by 80.
constexpr double kMostChange = 1.5;

int Today() {
  const auto now = std::chrono::system_clock::now();
  return std::chrono::floor<std::chrono::days>(now).time_since_epoch().count();
}

// A model as far as the times of its passes depend on it, in a line.
std::string Describe(std::string_view role, const LoadedModel* loaded) {
  if (loaded == nullptr) return fmt::format("{}: none\n", role);
  const Backend& backend = *loaded->backend;
  return fmt::format("{}: {}, {} positions, {} {} with KV in {}{} on {}\n", role,
                     FingerprintText(loaded->identity.model), loaded->model->config().max_positions,
                     backend.name(), PrecisionName(backend.precision()),
                     KvFormatName(backend.kv_format()),
                     loaded->experts == ExpertsPlace::kFile ? " and experts in the file" : "",
                     loaded->device->name());
}

// A text of everything that times depend on. (Of the context limit only whether passes behind very
// long contexts are measured: what is measured has KV of its own.)
std::string KeyOf(const EngineModels& models, const TimesNeeded& needed) {
  std::string what = fmt::format("{} {}\n{}\n", kFormat, kVersion, CpuModel());
  what += Describe("target", models.target);
  for (const DrafterId id : kDrafterIds) {
    const auto& [apart, on_target] = models.drafts[id];
    const bool first = id == DrafterId::kModel;  // Is named even where there is none.
    const std::string_view name = InfoOf(id).name;
    if (first || on_target != nullptr) {
      what += Describe(fmt::format("{} on target", name), on_target);
    }
    if (first || apart != nullptr) what += Describe(name, apart);
  }
  what += fmt::format("{} {} {} {}", needed.rows, needed.costs, MeasuredRows(needed).back(),
                      needed.context >= kVeryLongContext);
  return Sha256Hex(what);
}

ByDrafter<DraftTables> TablesOf(const EngineModels& models) {
  ByDrafter<DraftTables> tables;
  for (const DrafterId id : kDrafterIds) {
    const LoadedDraft& draft = models.drafts[id];
    tables[id] = {.apart = draft.apart != nullptr, .on_target = draft.on_target != nullptr};
  }
  return tables;
}

bool MakesSense(const TimeTable& table) {
  return std::ranges::all_of(table.times(), [](double us) { return us >= kLeastUs; });
}

double HalfWay(double learned, double before) {
  return std::sqrt(std::clamp(learned / before, 1 / kMostChange, kMostChange));
}

// What is learned of a table is a factor for each row count.
TimeTable HalfWay(const TimeTable& learned, const TimeTable& before) {
  std::vector<double> factors;
  for (const int rows : before.rows()) {
    const int context = before.contexts()[0];
    factors.push_back(HalfWay(learned.us(rows, context), before.us(rows, context)));
  }
  return before.Scaled(factors);
}

}  // namespace

MeasuredTimes MeasureTimes(const EngineModels& models, const TimesNeeded& needed,
                           MeasuredTimes known) {
  if (needed.costs) MeasureCosts(models, needed, &known.costs);
  if (!needed.rows || !known.row_times.rows().empty()) return known;
  // What the planner begins with has as many rows, but for those of very large batches.
  known.row_times = needed.costs ? known.costs.target : MeasureRows(*models.target, needed);
  known.knee_rows = KneeRows(known.row_times.rows(), ShortestContext(known.row_times));
  return known;
}

fs::path DefaultTimesFolder() {
  const auto variable = [](const char* name) -> fs::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  fs::path cache = variable("XDG_CACHE_HOME");
  if (!cache.is_absolute()) cache = variable("HOME") / ".cache";
  return cache.is_absolute() ? cache / "foretoken" / "times" : fs::path();
}

TimesCache::TimesCache(const fs::path& folder, const EngineModels& models,
                       const TimesNeeded& needed)
    : needed_(needed),
      tables_(TablesOf(models)),
      key_(KeyOf(models, needed)),
      path_(folder.empty() || !(needed.rows || needed.costs) ? "" : folder / (key_ + ".json")) {}

std::optional<MeasuredTimes> TimesCache::Read() const {
  const std::optional<Kept> kept = ReadKept();
  if (!kept.has_value()) return std::nullopt;
  const int age = Today() - kept->measured_day;
  if (age < 0 || age > kKeptDays) return std::nullopt;
  return kept->times;
}

void TimesCache::Write(const MeasuredTimes& times) const { WriteKept({times, Today()}); }

void TimesCache::Refresh(const CostModel& learned, std::int64_t rounds) const {
  if (rounds < kRoundsToLearn || !needed_.costs) return;
  std::optional<Kept> kept = ReadKept();
  if (!kept.has_value()) return;
  CostModel& costs = kept->times.costs;
  costs.target = HalfWay(learned.target, costs.target);
  bool any_apart = false;
  for (const DrafterId id : kDrafterIds) {
    const DraftTimes& seen = learned.drafts[id];
    DraftTimes& draft = costs.drafts[id];
    if (tables_[id].on_target) draft.on_target = HalfWay(seen.on_target, draft.on_target);
    if (tables_[id].apart) draft.apart = HalfWay(seen.apart, draft.apart);
    any_apart = any_apart || tables_[id].apart;
  }
  if (any_apart) {
    costs.target_contention *= HalfWay(learned.target_contention, costs.target_contention);
  }
  WriteKept(*kept);
}

std::optional<TimesCache::Kept> TimesCache::ReadKept() const {
  const Result<std::string> text = ReadFile(path_, kMaxFileBytes);
  if (!text.ok()) return std::nullopt;
  const auto json = Json::Parse(*text);
  if (json.is_discarded()) return std::nullopt;
  Status status;
  JsonObject file(&json, path_.string(), &status);
  file.Text("format", {kFormat});
  file.Integer("version", kVersion, kVersion);
  file.Text("key", {key_});
  Kept kept{.measured_day = file.Integer("measured_day", 0, kMaxDay)};
  MeasuredTimes& times = kept.times;
  if (needed_.rows) {
    times.row_times = ReadTable(file.Child("row_times"));
    times.knee_rows = file.Integer("knee_rows", 1, kMaxKneeRows);
  }
  if (needed_.costs) times.costs = ReadTimes(file.Child("costs"), tables_);
  file.Close();
  bool sensible = MakesSense(times.row_times) && MakesSense(times.costs.target);
  for (const DraftTimes& draft : times.costs.drafts) {
    sensible = sensible && MakesSense(draft.apart) && MakesSense(draft.on_target);
  }
  if (!sensible) file.Refuse("holds times that no pass takes");
  return status.ok() ? std::optional(kept) : std::nullopt;
}

void TimesCache::WriteKept(const Kept& kept) const {
  if (path_.empty()) return;
  const MeasuredTimes& times = kept.times;
  Json json = {{"format", kFormat}, {"version", kVersion}, {"key", key_}};
  json["measured_day"] = kept.measured_day;
  if (needed_.rows) {
    json["row_times"] = TableJson(times.row_times);
    json["knee_rows"] = times.knee_rows;
  }
  if (needed_.costs) json["costs"] = TimesJson(times.costs, tables_);
  const std::string text = json.dump(1) + "\n";
  std::error_code ignored;
  fs::create_directories(path_.parent_path(), ignored);
  static_cast<void>(ReplaceFile(path_, text));  // A cache: what cannot be kept is measured again.
}

}  // namespace foretoken
