#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "foretoken/generate.h"

namespace foretoken {

/// "ended by the model" ...: how a generation ended, to be read by people.
std::string_view DescribeFinish(FinishReason reason);

/// Counts, times and rates of one request, for `--json`.
nlohmann::json StatsJson(const RequestStats& stats);

/// What mode auto did: rounds and predicted against measured speed by mode.
nlohmann::json PlannerJson(const PlannerReport& report);

/// Hits among cache lookups; negative where there was none.
double HitRate(const RequestStats& stats);

}  // namespace foretoken
