#include "assembly/times_cache.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/cores.h"
#include "base/read_file.h"
#include "base/sha256.h"
#include "datastore/storage/files.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "foretoken-times";
constexpr int kVersion = 1;
constexpr std::size_t kMaxFileBytes = 1 << 20;
constexpr int kMaxDay = 1 << 20;
constexpr int kMaxKneeRows = 1 << 16;
// No pass is as short: a planner that believed it would plan for nothing else.
constexpr double kLeastUs = 0.01;
// Measured again after so many days: what is never seen while decoding (row counts that no plan
// uses, say) is not refreshed, and may have been measured in a slow moment.
constexpr int kKeptDays = 30;
// Rounds after which what was learned outweighs what an engine began with.
constexpr std::int64_t kRoundsToLearn = 300;
// One run may have been beside other work from its start to its end. So half of the way (of the
// logarithm) is gone to what it saw, and nothing it saw counts for more than so many times as long
// or short: it changes times by 22 % at most, and three runs of another speed by 80.
constexpr double kMostChange = 1.5;

int Today() {
  const auto now = std::chrono::system_clock::now();
  return static_cast<int>(std::chrono::floor<std::chrono::days>(now).time_since_epoch().count());
}

std::string TextOf(const std::array<char, 64>& fingerprint) {
  return {fingerprint.data(), strnlen(fingerprint.data(), fingerprint.size())};
}

// A model as far as the times of its passes depend on it, in a line.
std::string Describe(std::string_view role, const LoadedModel* loaded) {
  if (loaded == nullptr) return fmt::format("{}: none\n", role);
  return fmt::format("{}: {}, {} positions, {} {} on {}\n", role, TextOf(loaded->identity.model),
                     loaded->model->config().max_positions, loaded->backend->name(),
                     loaded->backend->precision() == Precision::kBF16 ? "bf16" : "f32",
                     loaded->device->name());
}

// Of everything that times depend on. (Not on the context limit: what is measured has KV of its
// own, behind contexts that the model alone limits.)
std::string KeyOf(const EngineModels& models, const TimesNeeded& needed) {
  std::string what = fmt::format("{} {}\n{}\n", kFormat, kVersion, CpuModel());
  what += Describe("target", models.target);
  what += Describe("draft on target", models.draft_on_target);
  what += Describe("draft", models.draft);
  what += fmt::format("{} {} {}", needed.rows, needed.costs, MostMeasuredRows(needed));
  return Sha256Hex(what);
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
      tables_{.draft = models.draft != nullptr,
              .draft_on_target = models.draft_on_target != nullptr},
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
  if (tables_.draft_on_target) {
    costs.draft_on_target = HalfWay(learned.draft_on_target, costs.draft_on_target);
  }
  if (tables_.draft) {
    costs.draft = HalfWay(learned.draft, costs.draft);
    costs.target_contention *= HalfWay(learned.target_contention, costs.target_contention);
  }
  WriteKept(*kept);
}

std::optional<TimesCache::Kept> TimesCache::ReadKept() const {
  if (path_.empty()) return std::nullopt;
  const Result<std::string> text = ReadFile(path_, kMaxFileBytes);
  if (!text.ok()) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
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
  CostModel& costs = times.costs;
  for (TimeTable* table : {&times.row_times, &costs.target, &costs.draft, &costs.draft_on_target}) {
    if (!MakesSense(*table)) file.Refuse("holds times that no pass takes");
  }
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
  const auto files = MakePosixFiles();
  if (!files->CreateDirectories(path_.parent_path()).ok()) return;
  // Another process may be keeping its own at this moment: each writes a file with a name of its
  // own first. A cache: what cannot be kept is measured again.
  fs::path own = path_;
  own += fmt::format(".{}", getpid());
  const Status written = PublishFile(files.get(), own, [&text](WritableFile* file) {
    return file->Append(std::as_bytes(std::span(text)));
  });
  if (written.ok()) static_cast<void>(files->Rename(own, path_));
}

}  // namespace foretoken
