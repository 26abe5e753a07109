#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/prediction/cost_model.h"

namespace foretoken {

/// What must be the same for measured times to hold.
struct MachineFingerprint {
  std::string cpu;       ///< The processor's name as the system gives it.
  int cores = 0;         ///< Logical cores of this process.
  std::string isa;       ///< The instruction set that the backend uses.
  int target_cores = 0;  ///< Cores of the target.
  int draft_cores = 0;   ///< Cores of the draft; 0: no draft.
};

/// What must be the same for measured acceptance, hits and times to hold: SHA-256 in lower-case
/// hexadecimal digits; empty for a draft that there is not.
struct ModelFingerprints {
  std::string target;
  std::string draft;
  std::string tokenizer;
  std::string precision;    ///< How weights are stored: "bf16", "f32" or "portable".
  std::string kv = "bf16";  ///< How keys and values are: "bf16", "f32" or "q8_0".
};

/// How one way of proposing did. Rates are counted over `rounds` rounds.
struct ProposerMeasurement {
  int rounds = 0;
  std::vector<double> acceptance;  ///< As ProposerModel::acceptance, 1 to kMaxPositions values.
  std::vector<double>
      hit_partial;               ///< [F - 1]: hit rate at k < K with fan-out F, up to kMaxFanout.
  std::vector<double> hit_full;  ///< The same at k = K.
  double coverage = 1;
  double mean_rows = 0;
  double us = 0;

  bool measured() const { return !acceptance.empty(); }
};

/// How tokens were chosen and verified while the rates were counted.
struct CalibratedSetting {
  double temperature = 0;
  std::string verifier = "shared-noise";  ///< Or "rejection".
  double saguaro_c = 1;  ///< C of Definition 14; below 1 with rejection sampling only.
  ByDrafter<ProposerMeasurement> proposers;

  const ProposerMeasurement& draft() const { return proposers[DrafterId::kModel]; }
};

/// What `foretoken calibrate` measures on one machine with one pair of models.
struct Calibration {
  MachineFingerprint machine;
  ModelFingerprints models;
  CostModel times;  ///< Its passes' and overheads' times; the proposers lie in the settings.
  std::vector<CalibratedSetting> settings;  ///< At least one.
};

/// Reads the JSON of docs/look_up/formats.md strictly: a field that is missing, unknown, of another
/// type or out of its range is refused by its place in the file. `where` names the file in errors.
Result<Calibration> ParseCalibration(std::string_view text, std::string_view where);
/// The same from a file of at most 16 MiB.
Result<Calibration> ReadCalibration(const std::filesystem::path& path);

/// What ParseCalibration reads back to the same values.
std::string FormatCalibration(const Calibration& calibration);

/// Refuses a calibration of another machine, naming what differs.
Status CheckMachine(const Calibration& calibration, const MachineFingerprint& machine,
                    std::string_view where);
/// Refuses a calibration of other models, naming which.
Status CheckModels(const Calibration& calibration, const ModelFingerprints& models,
                   std::string_view where);

/// The setting of that verifier and C whose temperature is closest (of two, the lower); null where
/// there is none. Points into `calibration`.
const CalibratedSetting* FindSetting(const Calibration& calibration, double temperature,
                                     std::string_view verifier, double saguaro_c);

/// What the planner computes with. `setting` is one of the calibration's.
CostModel ToCostModel(const Calibration& calibration, const CalibratedSetting& setting);

}  // namespace foretoken
