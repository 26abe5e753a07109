#include "apps/lab/study/calibration.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/prediction/plan_search.h"
#include "json/json.h"

namespace foretoken {
namespace {

TimeTable Table(std::vector<double> us) {
  const Result<TimeTable> table =
      TimeTable::Make(std::vector<int>{1, 8}, std::vector<int>{128, 512}, us);
  EXPECT_TRUE(table.ok());
  return *table;
}

ProposerMeasurement Proposer(double acceptance) {
  return {.rounds = 1200,
          .acceptance = {acceptance, acceptance - 0.1},
          .hit_partial = {0.5, 0.62, 0.7},
          .hit_full = {0.8, 0.9},
          .coverage = 0.75,
          .mean_rows = 3.5,
          .us = 2.25};
}

Calibration Sample() {
  Calibration calibration;
  calibration.machine = {
      .cpu = "Some CPU", .cores = 8, .isa = "avx2", .target_cores = 7, .draft_cores = 1};
  calibration.models = {.target = std::string(64, 'a'),
                        .draft = std::string(64, 'b'),
                        .tokenizer = std::string(16, 'c'),
                        .precision = "bf16",
                        .kv = "q8_0"};
  calibration.times.target = Table({9000, 9100, 10'000.5, 11'000});
  calibration.times.first_draft().apart = Table({800, 810, 900, 950});
  calibration.times.first_draft().on_target = Table({700, 710, 800, 850});
  calibration.times.host_us = 12;
  calibration.times.host_row_us = 5.5;
  calibration.times.sequence_token_us = 1;
  calibration.times.target_contention = 1.07;
  calibration.times.draft_contention = 1.2;
  for (const double temperature : {0.0, 0.7, 1.0}) {
    CalibratedSetting setting;
    setting.temperature = temperature;
    setting.proposers[DrafterId::kModel] = Proposer(0.8 - 0.2 * temperature);
    setting.proposers[DrafterId::kNgram] = Proposer(0.3);
    calibration.settings.push_back(setting);
  }
  calibration.settings.push_back({.temperature = 1, .verifier = "rejection", .saguaro_c = 0.5});
  return calibration;
}

Json SampleJson() { return Json::Parse(FormatCalibration(Sample())); }

std::string MessageOf(const std::string& text) {
  const Result<Calibration> calibration = ParseCalibration(text, "cal.json");
  return calibration.ok() ? "accepted" : calibration.error().message;
}

// The refusal of the sample with the value at `path` replaced, or removed where `value` is null.
std::string Refusal(const std::string& path, const Json& value) {
  Json json = SampleJson();
  if (value.is_null()) {
    const std::size_t last = path.rfind('/');
    json.Place(path.substr(0, last)).erase(path.substr(last + 1));
  } else {
    json.Place(path) = value;
  }
  return MessageOf(json.dump());
}

TEST(Calibration, ReadsBackWhatItWrites) {
  const std::string text = FormatCalibration(Sample());
  const Result<Calibration> read = ParseCalibration(text, "cal.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(FormatCalibration(*read), text);
  EXPECT_EQ(read->machine.cpu, "Some CPU");
  EXPECT_EQ(read->models.kv, "q8_0");
  EXPECT_EQ(read->settings.size(), 4);
  EXPECT_EQ(read->times.target.us(8, 128), 10'000.5);
  EXPECT_EQ(read->settings[1].proposers[DrafterId::kNgram].acceptance[1],
            Sample().settings[1].proposers[DrafterId::kNgram].acceptance[1]);
  EXPECT_FALSE(read->settings[1].proposers[DrafterId::kRetrieval].measured());
  EXPECT_EQ(read->settings[3].saguaro_c, 0.5);

  Calibration alone = Sample();  // Without a draft.
  alone.models.draft.clear();
  for (CalibratedSetting& setting : alone.settings) setting.proposers[DrafterId::kModel] = {};
  const Result<Calibration> read_alone = ParseCalibration(FormatCalibration(alone), "cal.json");
  ASSERT_TRUE(read_alone.ok()) << read_alone.error().message;
  EXPECT_TRUE(read_alone->times.first_draft().apart.rows().empty());
}

TEST(Calibration, KeepsThatAPassSaysSeveralTokens) {
  Calibration calibration = Sample();
  calibration.times.first_draft().pass = {.positions = 7, .block = 8, .from_root = true};
  const Result<Calibration> read = ParseCalibration(FormatCalibration(calibration), "cal.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ToCostModel(*read, read->settings[0]).first_draft().pass,
            calibration.times.first_draft().pass);
  const std::string refusal = Refusal("/times/draft_pass", {{"positions", 0}, {"block", 8}});
  EXPECT_NE(refusal.find("draft_pass: positions is 0"), std::string::npos) << refusal;
}

TEST(Calibration, WithoutKvIsOfTheUsualOne) {
  for (const std::string precision : {"bf16", "f32", "portable"}) {
    Json json = SampleJson();
    json["models"].erase("kv");
    json["models"]["precision"] = precision;
    const Result<Calibration> read = ParseCalibration(json.dump(), "cal.json");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->models.kv, precision == "f32" ? "f32" : "bf16");
  }
}

TEST(Calibration, RefusesNonsenseByItsPlace) {
  const std::vector<std::tuple<std::string, Json, std::string>> cases = {
      {"/format", "other",
       "cal.json: format is \"other\" but must be one of foretoken-calibration"},
      {"/version", 2, "cal.json: version is 2 but must be a whole number from 1 to 1"},
      {"/machine", nullptr, "cal.json lacks the field \"machine\""},
      {"/machine", 3, "cal.json: machine is 3 but must be an object"},
      {"/machine/cores", 0, "cal.json: machine: cores is 0"},
      {"/machine/cores", 1e300, "cal.json: machine: cores is 1e+300"},
      {"/machine/cores", 18446744073709551615U, "must be a whole number"},
      {"/machine/cpu", "", "cal.json: machine: cpu is \"\""},
      {"/machine/cpu", "a\nb", "must be a line"},
      {"/machine/color", "red", "cal.json: machine has an unknown field \"color\""},
      {"/models/target", "xyz", "lower-case hexadecimal digits"},
      {"/models/precision", "int2", "one of bf16, f32"},
      {"/models/kv", "q4_0", "models: kv is \"q4_0\" but must be one of bf16, f32, q8_0"},
      {"/models/draft", nullptr, "unknown field \"draft\""},  // Its times are there.
      {"/times/target", nullptr, "cal.json: times lacks the field \"target\""},
      {"/times/target/rows", Json::array({8, 1}), "cal.json: times: target holds rows 1 after 8"},
      {"/times/target/us", Json::array({1, 2, 3}), "3 times for 2 rows and 2 contexts"},
      {"/times/target/us/2", -4, "cal.json: times: target: us is -4"},
      {"/times/target/us/2", 0, "must be positive"},
      {"/times/target_contention", 0.5, "must be a number from 1 to 100"},
      {"/settings", Json::array(), "cal.json has no settings"},
      {"/settings", "none", "a list of at most 256 items"},
      {"/settings/1/temperature", -1, "cal.json: settings[1]: temperature is -1"},
      {"/settings/1/temperature", 0, "settings[1] repeats a temperature"},
      {"/settings/1/verifier", "greedy", "one of shared-noise, rejection"},
      {"/settings/1/saguaro_c", 0.5, "without rejection sampling"},
      {"/settings/0/draft/acceptance", Json::array(), "no acceptance rates"},
      {"/settings/0/draft/acceptance/0", 1.5, "acceptance is 1.5 but must be a number from 0 to 1"},
      {"/settings/0/draft/acceptance", Json(std::vector<double>(17, 0.5)), "at most 16 items"},
      {"/settings/0/draft/hit_full", Json::array({0.9, 0.8}), "has a hit_full that falls"},
      {"/settings/0/draft/coverage", "all", "coverage is \"all\""},
      {"/settings/0/draft/mood", 1, "settings[0]: draft has an unknown field \"mood\""},
  };
  for (const auto& [path, value, saying] : cases) {
    const std::string message = Refusal(path, value);
    EXPECT_NE(message.find(saying), std::string::npos) << path << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_EQ(MessageOf(""), "cal.json: not valid JSON");
  EXPECT_EQ(MessageOf("{\"format\": 1e999}"), "cal.json: not valid JSON");
  EXPECT_EQ(MessageOf("[]"), "cal.json is [] but must be an object");
}

TEST(Calibration, ReadsFiles) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "foretoken_calibration_test.json";
  std::ofstream(path) << FormatCalibration(Sample());
  EXPECT_TRUE(ReadCalibration(path).ok());
  std::filesystem::remove(path);
  const Result<Calibration> absent = ReadCalibration(path);
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.error().message.find("No such file"), std::string::npos);
  EXPECT_FALSE(ReadCalibration(testing::TempDir()).ok());  // A folder.
}

TEST(Calibration, RefusesAnotherMachineNamingWhatDiffers) {
  const Calibration calibration = Sample();
  EXPECT_TRUE(CheckMachine(calibration, calibration.machine, "cal.json").ok());
  MachineFingerprint machine = calibration.machine;
  machine.cpu = "Other CPU";
  EXPECT_NE(CheckMachine(calibration, machine, "cal.json")
                .error()
                .message.find("processor is Some CPU, here it is Other CPU"),
            std::string::npos);
  machine = calibration.machine;
  machine.isa = "avx512";
  EXPECT_FALSE(CheckMachine(calibration, machine, "cal.json").ok());
  machine = calibration.machine;
  machine.draft_cores = 2;
  EXPECT_NE(CheckMachine(calibration, machine, "cal.json").error().message.find("draft's number"),
            std::string::npos);
}

TEST(Calibration, RefusesOtherModelsNamingWhich) {
  const Calibration calibration = Sample();
  EXPECT_TRUE(CheckModels(calibration, calibration.models, "cal.json").ok());
  ModelFingerprints models = calibration.models;
  models.draft = std::string(64, 'd');
  EXPECT_NE(CheckModels(calibration, models, "cal.json")
                .error()
                .message.find("another draft: its fingerprint is bbbbbbbbbbbb, here it is "
                              "dddddddddddd"),
            std::string::npos);
  models = calibration.models;
  models.target[63] = 'e';  // Beyond the digits that are shown.
  EXPECT_FALSE(CheckModels(calibration, models, "cal.json").ok());
  models = calibration.models;
  models.precision = "f32";
  EXPECT_NE(CheckModels(calibration, models, "cal.json").error().message.find("precision"),
            std::string::npos);
  models = calibration.models;
  models.kv = "bf16";
  EXPECT_NE(CheckModels(calibration, models, "cal.json")
                .error()
                .message.find("another format of keys and values: its KV is q8_0, here it is bf16"),
            std::string::npos);
}

TEST(Calibration, FindsTheClosestTemperature) {
  const Calibration calibration = Sample();
  EXPECT_EQ(FindSetting(calibration, 0.8, "shared-noise", 1)->temperature, 0.7);
  EXPECT_EQ(FindSetting(calibration, 0.35, "shared-noise", 1)->temperature, 0);
  EXPECT_EQ(FindSetting(calibration, 9, "shared-noise", 1)->temperature, 1);
  EXPECT_EQ(FindSetting(calibration, 0, "rejection", 0.5)->temperature, 1);
  EXPECT_EQ(FindSetting(calibration, 0, "rejection", 1), nullptr);
}

TEST(Calibration, GivesTheModelThatThePlannerUses) {
  const Calibration calibration = Sample();
  const CostModel model = ToCostModel(calibration, *FindSetting(calibration, 0, "shared-noise", 1));
  EXPECT_NEAR(model.proposers[DrafterId::kModel].acceptance[1], 0.7, 1e-12);
  EXPECT_NEAR(model.proposers[DrafterId::kModel].curves.partial.hit(2), 0.62, 1e-12);
  EXPECT_NEAR(model.proposers[DrafterId::kModel].curves.full.hit(2), 0.9, 1e-12);
  EXPECT_EQ(model.proposers[DrafterId::kNgram].mean_rows, 3.5);
  EXPECT_FALSE(model.proposers[DrafterId::kRetrieval].measured());
  EXPECT_EQ(ChoosePlan(model, {}, {}).ranked[0].plan.mode, Mode::kSsd);
}

}  // namespace
}  // namespace foretoken
