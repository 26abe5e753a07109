#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "foretoken/generate.h"

namespace foretoken {

/// "ended by the model" ...: how a generation ended, to be read by people.
std::string_view DescribeFinish(FinishReason reason);

/// ", 2.51 tokens/round, 38.4% cache hits": what there is to say of the mode, to be read by people.
std::string SpeculationText(Mode mode, const RequestStats& stats);

/// Counts, times and rates of one request, for `--json`.
nlohmann::json StatsJson(const RequestStats& stats);

/// What mode auto did: rounds and predicted against measured speed by mode.
nlohmann::json PlannerJson(const PlannerReport& report);

/// Hits among cache lookups; negative where there was none.
double HitRate(const RequestStats& stats);

/// A share, or null for a negative one, which stands for "no data".
nlohmann::json ShareJson(double share);

}  // namespace foretoken
