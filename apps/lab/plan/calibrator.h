#pragma once

#include <string>

#include "apps/foretoken/common/prompts.h"
#include "apps/foretoken/options/options.h"
#include "apps/lab/study/calibration.h"
#include "base/result.h"

namespace foretoken {

/// What to measure, with which models, prompts and cores. Of the options of decoding, those of
/// models and cores, K, and where outputs end count.
struct CalibrateOptions : DecodingOptions {
  PromptOptions prompts;
  std::string temperatures = "0,0.7,1";
  std::string verify = "both";  ///< Or shared-noise, or rejection.
  std::string saguaro_cs = "0.7,0.4,0.1";
  std::string rates_of;  ///< A calibration whose rates are kept; empty: they are measured.
};

/// Acceptance, cache hits and times of a pair on this machine.
Result<Calibration> MeasureCalibration(const CalibrateOptions& options);

}  // namespace foretoken
