#pragma once

#include <string>
#include <string_view>

#include "study/calibration.h"

namespace foretoken {

/// The measured rates and the fits c F^-r as a table for a terminal.
std::string CalibrationTable(const Calibration& calibration);

/// A self-contained page with the plots of the paper's Figures 3 (miss rate against fan-out, with
/// fits), 4 (acceptance against hits over C, where rejection verification was measured) and 5
/// (fallbacks against batch size, predicted from the measurements), acceptance by position, and
/// the passes' times.
std::string CalibrationPage(const Calibration& calibration, std::string_view title);

}  // namespace foretoken
