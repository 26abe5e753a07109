#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/lab/study/calibration.h"
#include "core/engine/engine.h"
#include "json/json.h"

namespace foretoken {

/// What a calibration run generates.
struct CalibrationTask {
  std::vector<std::vector<Token>> prompts;
  SamplingParams sampling;
  StopRules stop;
  int lookahead = 6;
  /// How long every round pauses for the speculator, so that all candidates are prepared whatever
  /// the speeds of the two devices: rates are then the models', not the machine's.
  std::int64_t pause_ns = 0;
  std::function<void()> on_prompt;  ///< Called after each prompt.
};

/// Acceptance and hits of the draft, of prompt lookup and of random proposals as `task` samples,
/// verified as the engine does, and the draft's time beside its passes, which `times` has. Needs an
/// engine that offers mode ssd with room for kMaxFanout branches at each of K + 1 nodes. Leaves
/// the setting's temperature to the caller, as MeasureSaguaro does.
Result<CalibratedSetting> MeasureRates(Engine& engine, const CalibrationTask& task,
                                       const CostModel& times);

/// Acceptance and hits of the draft alone where it is sampled with C = `saguaro_c` of Definition
/// 14: at fan-out kSaguaroFanout, since C changes what that many tokens are drawn with. Needs an
/// engine that verifies by rejection, and a temperature above 0.
inline constexpr int kSaguaroFanout = kDefaultFanout;
Result<CalibratedSetting> MeasureSaguaro(Engine& engine, const CalibrationTask& task,
                                         double saguaro_c);

/// Host time of a round and of its rows, from the prompts of `task`, without the pause. Writes
/// them to `times`.
Status MeasureOverheads(Engine& engine, const CalibrationTask& task, CostModel* times);

/// The measured rates and the fits c F^-r as a table for a terminal.
std::string CalibrationTable(const Calibration& calibration);

/// What the page of a calibration draws (report.html): the calibration's file with, for each
/// setting that has a draft, the fits c F^-r of its miss rates and, where C is 1, the speeds with
/// each fallback by batch size, predicted from the measurements.
Json CalibrationReport(const Calibration& calibration, std::string_view title);

}  // namespace foretoken
