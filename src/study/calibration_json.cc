#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "base/read_file.h"
#include "study/calibration.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "foretoken-calibration";
constexpr int kVersion = 1;
constexpr std::size_t kMaxFileBytes = 16 << 20;
constexpr std::size_t kMaxText = 256;
constexpr std::size_t kMaxSettings = 256;
constexpr std::size_t kMaxPoints = TimeTable::kMaxRowPoints * TimeTable::kMaxContextPoints;
constexpr int kMaxCount = 1 << 30;
constexpr double kMaxUs = 1e9;
constexpr double kMaxTemperature = 100;
constexpr double kMaxContention = 100;
constexpr double kMaxProposalRows = kMaxProposal;

// A value as errors show it: short, and printable whatever the file holds.
std::string Show(const Json& json) {
  constexpr std::size_t kShown = 40;
  std::string text = json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

// A JSON object read field by field. The first thing that is wrong, anywhere in the file, is kept
// in `status`, and everything after it reads as defaults: a parser is a list of fields.
class Object {
 public:
  Object(const Json* json, std::string place, Status* status)
      : json_(json), place_(std::move(place)), status_(status) {
    if (json_ != nullptr && !json_->is_object()) {
      Refuse(fmt::format("is {} but must be an object", Show(*json_)));
      json_ = nullptr;
    }
  }

  // Call when all fields have been read: any other one is a mistake.
  void Close() {
    if (json_ == nullptr) return;
    for (const auto& [name, value] : json_->items()) {
      if (!known_.contains(name)) Refuse("has an unknown field " + Show(Json(name)));
    }
  }

  // Whether an optional field is there.
  bool Has(const char* name) {
    known_.insert(name);
    return json_ != nullptr && json_->contains(name);
  }

  Object Child(const char* name) { return {Find(name), Path(name), status_}; }

  std::string Text(const char* name, std::initializer_list<std::string_view> choices = {}) {
    const Json* json = Find(name);
    if (json == nullptr) return {};
    const auto* text = json->get_ptr<const std::string*>();
    const auto control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
    if (text == nullptr || text->empty() || text->size() > kMaxText ||
        std::ranges::any_of(*text, control)) {
      RefuseField(name, *json, fmt::format("a line of 1 to {} bytes", kMaxText));
    } else if (choices.size() > 0 && std::ranges::find(choices, *text) == choices.end()) {
      RefuseField(name, *json, fmt::format("one of {}", fmt::join(choices, ", ")));
    } else {
      return *text;
    }
    return {};
  }

  std::string Fingerprint(const char* name) {
    constexpr std::size_t kLeast = 8;
    constexpr std::size_t kMost = 64;
    const std::string text = Text(name);
    const bool hexadecimal = text.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (status_->ok() && (!hexadecimal || text.size() < kLeast || text.size() > kMost)) {
      RefuseField(name, Json(text),
                  fmt::format("{} to {} lower-case hexadecimal digits", kLeast, kMost));
    }
    return text;
  }

  int Integer(const char* name, int low, int high) {
    const Json* json = Find(name);
    return json == nullptr ? low : AsInteger(name, *json, low, high);
  }

  double Number(const char* name, double low, double high) {
    const Json* json = Find(name);
    return json == nullptr ? low : AsNumber(name, *json, low, high);
  }

  std::vector<int> Integers(const char* name, std::size_t most, int low, int high) {
    std::vector<int> values;
    for (const Json& item : List(name, most)) values.push_back(AsInteger(name, item, low, high));
    return values;
  }

  std::vector<double> Numbers(const char* name, std::size_t most, double low, double high) {
    std::vector<double> values;
    for (const Json& item : List(name, most)) values.push_back(AsNumber(name, item, low, high));
    return values;
  }

  // The elements of an array of objects.
  std::vector<Object> Objects(const char* name, std::size_t most) {
    std::vector<Object> objects;
    for (const Json& item : List(name, most)) {
      objects.push_back({&item, fmt::format("{}[{}]", Path(name), objects.size()), status_});
    }
    return objects;
  }

  void Refuse(const std::string& what) {
    if (status_->ok()) *status_ = InvalidInput(fmt::format("{} {}", place_, what));
  }
  bool ok() const { return status_->ok(); }

 private:
  // Null where something was wrong before, or is now.
  const Json* Find(const char* name) {
    known_.insert(name);
    if (json_ == nullptr || !status_->ok()) return nullptr;
    const auto found = json_->find(name);
    if (found != json_->end()) return &*found;
    Refuse(fmt::format("lacks the field \"{}\"", name));
    return nullptr;
  }

  const Json& List(const char* name, std::size_t most) {
    static const Json kEmpty = Json::array();
    const Json* json = Find(name);
    if (json == nullptr) return kEmpty;
    if (json->is_array() && json->size() <= most) return *json;
    RefuseField(name, *json, fmt::format("a list of at most {} items", most));
    return kEmpty;
  }

  int AsInteger(const char* name, const Json& json, int low, int high) {
    if (json.is_number_integer()) {
      const bool huge = json.is_number_unsigned() && json.get<std::uint64_t>() > INT32_MAX;
      const std::int64_t value = huge ? INT64_MAX : json.get<std::int64_t>();
      if (value >= low && value <= high) return static_cast<int>(value);
    }
    RefuseField(name, json, fmt::format("a whole number from {} to {}", low, high));
    return low;
  }

  double AsNumber(const char* name, const Json& json, double low, double high) {
    if (json.is_number()) {
      const auto value = json.get<double>();
      if (value >= low && value <= high) return value;
    }
    RefuseField(name, json, fmt::format("a number from {} to {}", low, high));
    return low;
  }

  void RefuseField(const char* name, const Json& json, const std::string& wanted) {
    if (status_->ok()) {
      *status_ = InvalidInput(
          fmt::format("{}: {} is {} but must be {}", place_, name, Show(json), wanted));
    }
  }

  std::string Path(const char* name) const { return fmt::format("{}: {}", place_, name); }

  const Json* json_;
  std::string place_;
  Status* status_;
  std::set<std::string, std::less<>> known_;
};

TimeTable ReadTable(Object object) {
  const auto rows = object.Integers("rows", TimeTable::kMaxRowPoints, 1, kMaxCount);
  const auto contexts = object.Integers("contexts", TimeTable::kMaxContextPoints, 1, kMaxCount);
  const auto us = object.Numbers("us", kMaxPoints, 0, kMaxUs);
  object.Close();
  if (!object.ok()) return {};
  const Result<TimeTable> table = TimeTable::Make(rows, contexts, us);
  if (table.ok()) return *table;
  object.Refuse("holds " + table.error().message);
  return {};
}

std::vector<double> ReadHits(Object& object, const char* name) {
  const std::vector<double> hits = object.Numbers(name, kMaxFanout, 0, 1);
  if (!std::ranges::is_sorted(hits)) {
    object.Refuse(
        fmt::format("has a {} that falls: with a larger fan-out as many outcomes are hit "
                    "at least",
                    name));
  }
  return hits;
}

ProposerMeasurement ReadProposer(Object& setting, const char* name) {
  ProposerMeasurement proposer;
  if (!setting.Has(name)) return proposer;
  Object object = setting.Child(name);
  proposer.rounds = object.Integer("rounds", 1, kMaxCount);
  proposer.acceptance = object.Numbers("acceptance", ProposerModel::kMaxPositions, 0, 1);
  proposer.hit_partial = ReadHits(object, "hit_partial");
  proposer.hit_full = ReadHits(object, "hit_full");
  proposer.coverage = object.Number("coverage", 0, 1);
  proposer.mean_rows = object.Number("mean_rows", 0, kMaxProposalRows);
  proposer.us = object.Number("us", 0, kMaxUs);
  object.Close();
  if (proposer.acceptance.empty()) object.Refuse("has no acceptance rates: one at least is wanted");
  return proposer;
}

CalibratedSetting ReadSetting(Object& object) {
  CalibratedSetting setting;
  setting.temperature = object.Number("temperature", 0, kMaxTemperature);
  setting.verifier = object.Text("verifier", {"shared-noise", "rejection"});
  setting.saguaro_c = object.Number("saguaro_c", 0, 1);
  setting.draft = ReadProposer(object, "draft");
  setting.ngram = ReadProposer(object, "ngram");
  setting.retrieval = ReadProposer(object, "retrieval");
  setting.random = ReadProposer(object, "random");
  object.Close();
  if (setting.saguaro_c != 1 && setting.verifier != "rejection") {
    object.Refuse("has a saguaro_c other than 1 without rejection sampling");
  }
  return setting;
}

void ReadMachine(Object object, MachineFingerprint* machine) {
  constexpr int kMaxCores = 1 << 16;
  machine->cpu = object.Text("cpu");
  machine->cores = object.Integer("cores", 1, kMaxCores);
  machine->isa = object.Text("isa");
  machine->target_cores = object.Integer("target_cores", 1, kMaxCores);
  machine->draft_cores = object.Integer("draft_cores", 0, kMaxCores);
  object.Close();
}

void ReadModels(Object object, ModelFingerprints* models) {
  models->target = object.Fingerprint("target");
  if (object.Has("draft")) models->draft = object.Fingerprint("draft");
  models->tokenizer = object.Fingerprint("tokenizer");
  models->precision = object.Text("precision", {"bf16", "f32"});
  object.Close();
}

void ReadTimes(Object object, bool with_draft, CostModel* times) {
  times->target = ReadTable(object.Child("target"));
  if (with_draft) {
    times->draft = ReadTable(object.Child("draft"));
    times->draft_on_target = ReadTable(object.Child("draft_on_target"));
  }
  times->host_us = object.Number("host_us", 0, kMaxUs);
  times->host_row_us = object.Number("host_row_us", 0, kMaxUs);
  times->sequence_token_us = object.Number("sequence_token_us", 0, kMaxUs);
  times->target_contention = object.Number("target_contention", 1, kMaxContention);
  times->draft_contention = object.Number("draft_contention", 1, kMaxContention);
  object.Close();
}

void ReadSettings(Object& file, Calibration* calibration) {
  std::set<std::tuple<double, std::string, double>> seen;
  for (Object& object : file.Objects("settings", kMaxSettings)) {
    CalibratedSetting setting = ReadSetting(object);
    if (!seen.emplace(setting.temperature, setting.verifier, setting.saguaro_c).second) {
      object.Refuse("repeats a temperature, verifier and saguaro_c");
    }
    if (setting.draft.measured() && calibration->models.draft.empty()) {
      object.Refuse("measures a draft, but models names none");
    }
    calibration->settings.push_back(std::move(setting));
  }
  if (calibration->settings.empty()) file.Refuse("has no settings: one at least is wanted");
}

Json TableJson(const TimeTable& table) {
  const auto us = table.times();
  return {{"rows", std::vector<int>(table.rows().begin(), table.rows().end())},
          {"contexts", std::vector<int>(table.contexts().begin(), table.contexts().end())},
          {"us", std::vector<double>(us.begin(), us.end())}};
}

void AddProposer(const char* name, const ProposerMeasurement& proposer, Json* setting) {
  if (!proposer.measured()) return;
  (*setting)[name] = {{"rounds", proposer.rounds},
                      {"acceptance", proposer.acceptance},
                      {"hit_partial", proposer.hit_partial},
                      {"hit_full", proposer.hit_full},
                      {"coverage", proposer.coverage},
                      {"mean_rows", proposer.mean_rows},
                      {"us", proposer.us}};
}

Json SettingJson(const CalibratedSetting& setting) {
  Json json = {{"temperature", setting.temperature},
               {"verifier", setting.verifier},
               {"saguaro_c", setting.saguaro_c}};
  AddProposer("draft", setting.draft, &json);
  AddProposer("ngram", setting.ngram, &json);
  AddProposer("retrieval", setting.retrieval, &json);
  AddProposer("random", setting.random, &json);
  return json;
}

}  // namespace

Result<Calibration> ParseCalibration(std::string_view text, std::string_view where) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return InvalidInput(fmt::format("{}: not valid JSON", where));
  Status status;
  Object file(&json, std::string(where), &status);
  file.Text("format", {kFormat});
  file.Integer("version", kVersion, kVersion);
  Calibration calibration;
  ReadMachine(file.Child("machine"), &calibration.machine);
  ReadModels(file.Child("models"), &calibration.models);
  ReadTimes(file.Child("times"), !calibration.models.draft.empty(), &calibration.times);
  ReadSettings(file, &calibration);
  file.Close();
  if (!status.ok()) return status.error();
  return calibration;
}

Result<Calibration> ReadCalibration(const std::filesystem::path& path) {
  const Result<std::string> text = ReadFile(path, kMaxFileBytes + 1);
  if (!text.ok()) return InvalidInput(fmt::format("{}: {}", path.string(), text.error().message));
  if (text->size() > kMaxFileBytes) {
    return InvalidInput(fmt::format("{}: larger than {} MiB, so it is no calibration",
                                    path.string(), kMaxFileBytes >> 20));
  }
  return ParseCalibration(*text, path.string());
}

std::string FormatCalibration(const Calibration& calibration) {
  const MachineFingerprint& machine = calibration.machine;
  const ModelFingerprints& models = calibration.models;
  const CostModel& times = calibration.times;
  Json json = {{"format", kFormat}, {"version", kVersion}};
  json["machine"] = {{"cpu", machine.cpu},
                     {"cores", machine.cores},
                     {"isa", machine.isa},
                     {"target_cores", machine.target_cores},
                     {"draft_cores", machine.draft_cores}};
  json["models"] = {{"target", models.target}};
  if (!models.draft.empty()) json["models"]["draft"] = models.draft;
  json["models"]["tokenizer"] = models.tokenizer;
  json["models"]["precision"] = models.precision;
  json["times"] = {{"target", TableJson(times.target)}};
  if (!models.draft.empty()) {
    json["times"]["draft"] = TableJson(times.draft);
    json["times"]["draft_on_target"] = TableJson(times.draft_on_target);
  }
  json["times"]["host_us"] = times.host_us;
  json["times"]["host_row_us"] = times.host_row_us;
  json["times"]["sequence_token_us"] = times.sequence_token_us;
  json["times"]["target_contention"] = times.target_contention;
  json["times"]["draft_contention"] = times.draft_contention;
  json["settings"] = Json::array();
  for (const CalibratedSetting& setting : calibration.settings) {
    json["settings"].push_back(SettingJson(setting));
  }
  return json.dump(1) + "\n";
}

}  // namespace foretoken
