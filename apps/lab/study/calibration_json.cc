#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "apps/lab/study/calibration.h"
#include "base/files/read_file.h"
#include "core/prediction/json/times_json.h"
#include "json/json.h"

namespace foretoken {
namespace {

constexpr std::string_view kFormat = "foretoken-calibration";
constexpr int kVersion = 1;
constexpr std::size_t kMaxFileBytes = 16 << 20;
constexpr std::size_t kMaxSettings = 256;
constexpr int kMaxCount = 1 << 30;
constexpr double kMaxTemperature = 100;

std::vector<double> ReadHits(JsonObject& object, const char* name) {
  const std::vector<double> hits = object.Numbers(name, kMaxFanout, 0, 1);
  if (!std::ranges::is_sorted(hits)) {
    object.Refuse(fmt::format(
        "has a {} that falls: with a larger fan-out as many outcomes are hit at least", name));
  }
  return hits;
}

ProposerMeasurement ReadProposer(JsonObject& setting, const char* name) {
  ProposerMeasurement proposer;
  if (!setting.Has(name)) return proposer;
  JsonObject object = setting.Child(name);
  proposer.rounds = object.Integer("rounds", 1, kMaxCount);
  proposer.acceptance = object.Numbers("acceptance", ProposerModel::kMaxPositions, 0, 1);
  proposer.hit_partial = ReadHits(object, "hit_partial");
  proposer.hit_full = ReadHits(object, "hit_full");
  proposer.coverage = object.Number("coverage", 0, 1);
  proposer.mean_rows = object.Number("mean_rows", 0, kMaxProposal);
  proposer.us = object.Number("us", 0, kMaxTimeUs);
  object.Close();
  if (proposer.acceptance.empty()) object.Refuse("has no acceptance rates: one at least is wanted");
  return proposer;
}

CalibratedSetting ReadSetting(JsonObject& object) {
  CalibratedSetting setting;
  setting.temperature = object.Number("temperature", 0, kMaxTemperature);
  setting.verifier = object.Text("verifier", {"shared-noise", "rejection"});
  setting.saguaro_c = object.Number("saguaro_c", 0, 1);
  for (const DrafterId id : kDrafterIds) {
    setting.proposers[id] = ReadProposer(object, InfoOf(id).name.data());
  }
  object.Close();
  if (setting.saguaro_c != 1 && setting.verifier != "rejection") {
    object.Refuse("has a saguaro_c other than 1 without rejection sampling");
  }
  return setting;
}

void ReadMachine(JsonObject object, MachineFingerprint* machine) {
  constexpr int kMaxCores = 1 << 16;
  machine->cpu = object.Text("cpu");
  machine->cores = object.Integer("cores", 1, kMaxCores);
  machine->isa = object.Text("isa");
  machine->target_cores = object.Integer("target_cores", 1, kMaxCores);
  machine->draft_cores = object.Integer("draft_cores", 0, kMaxCores);
  object.Close();
}

void ReadModels(JsonObject object, ModelFingerprints* models) {
  models->target = object.Fingerprint("target");
  if (object.Has("draft")) models->draft = object.Fingerprint("draft");
  models->tokenizer = object.Fingerprint("tokenizer");
  models->precision = object.Text(
      "precision", {"bf16", "f32", "portable", "bf16, draft portable", "portable, draft bf16"});
  // Older files do not say.
  models->kv = object.Has("kv") ? object.Text("kv", {"bf16", "f32", "q8_0"})
                                : std::string(models->precision == "f32" ? "f32" : "bf16");
  object.Close();
}

ByDrafter<DraftTables> TablesOf(const ModelFingerprints& models) {
  ByDrafter<DraftTables> tables;
  const bool there = !models.draft.empty();
  tables[DrafterId::kModel] = {.apart = there, .on_target = there};
  return tables;
}

void ReadSettings(JsonObject& file, Calibration* calibration) {
  std::set<std::tuple<double, std::string, double>> seen;
  for (JsonObject& object : file.Objects("settings", kMaxSettings)) {
    CalibratedSetting setting = ReadSetting(object);
    if (!seen.emplace(setting.temperature, setting.verifier, setting.saguaro_c).second) {
      object.Refuse("repeats a temperature, verifier and saguaro_c");
    }
    if (setting.draft().measured() && calibration->models.draft.empty()) {
      object.Refuse("measures a draft, but models names none");
    }
    calibration->settings.push_back(std::move(setting));
  }
  if (calibration->settings.empty()) file.Refuse("has no settings: one at least is wanted");
}

Json SettingJson(const CalibratedSetting& setting) {
  Json json = {{"temperature", setting.temperature},
               {"verifier", setting.verifier},
               {"saguaro_c", setting.saguaro_c}};
  for (const DrafterId id : kDrafterIds) {
    const ProposerMeasurement& proposer = setting.proposers[id];
    if (!proposer.measured()) continue;
    json[InfoOf(id).name.data()] = {{"rounds", proposer.rounds},
                                    {"acceptance", proposer.acceptance},
                                    {"hit_partial", proposer.hit_partial},
                                    {"hit_full", proposer.hit_full},
                                    {"coverage", proposer.coverage},
                                    {"mean_rows", proposer.mean_rows},
                                    {"us", proposer.us}};
  }
  return json;
}

}  // namespace

Result<Calibration> ParseCalibration(std::string_view text, std::string_view where) {
  const auto json = Json::Parse(text);
  if (json.is_discarded()) return Invalid("{}: not valid JSON", where);
  Status status;
  JsonObject file(&json, std::string(where), &status);
  file.Text("format", {kFormat});
  file.Integer("version", kVersion, kVersion);
  Calibration calibration;
  ReadMachine(file.Child("machine"), &calibration.machine);
  ReadModels(file.Child("models"), &calibration.models);
  calibration.times = ReadTimes(file.Child("times"), TablesOf(calibration.models));
  ReadSettings(file, &calibration);
  file.Close();
  if (!status.ok()) return status.error();
  return calibration;
}

Result<Calibration> ReadCalibration(const std::filesystem::path& path) {
  const Result<std::string> text = ReadFile(path, kMaxFileBytes + 1);
  if (!text.ok()) return Invalid("{}: {}", path.string(), text.error().message);
  if (text->size() > kMaxFileBytes) {
    return Invalid("{}: larger than {} MiB, so it is no calibration", path.string(),
                   kMaxFileBytes >> 20);
  }
  return ParseCalibration(*text, path.string());
}

std::string FormatCalibration(const Calibration& calibration) {
  const MachineFingerprint& machine = calibration.machine;
  const ModelFingerprints& models = calibration.models;
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
  json["models"]["kv"] = models.kv;
  json["times"] = TimesJson(calibration.times, TablesOf(models));
  json["settings"] = Json::array();
  for (const CalibratedSetting& setting : calibration.settings) {
    json["settings"].push_back(SettingJson(setting));
  }
  return json.dump(1) + "\n";
}

}  // namespace foretoken
