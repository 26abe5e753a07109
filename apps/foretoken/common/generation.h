#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "foretoken/generate.h"
#include "json/json.h"

namespace foretoken {

/// "ended by the model" ...: how a generation ended, to be read by people.
std::string_view DescribeFinish(FinishReason reason);

/// "38 tokens, 412 tokens/s"; without a speed where nothing was decoded after the first token.
std::string SpeedText(const RequestStats& stats);

/// ", 2.51 tokens/round, 38.4% cache hits": what there is to say of the mode, to be read by people.
std::string SpeculationText(Mode mode, const RequestStats& stats);

/// What drafting cost and gave, in sums over rounds.
struct DraftingCosts {
  std::int64_t rounds = 0;  ///< Rounds of sequences.
  std::int64_t tokens = 0;  ///< Emitted.
  std::int64_t proposed = 0;
  std::int64_t accepted = 0;
  double target = 0;  ///< Time of the target's passes, in the unit of the others.
  double wait = 0;    ///< Time of waiting for proposals.
  double host = 0;    ///< Time of all else.
};
DraftingCosts CostsOf(const RequestStats& stats, const EngineStats& engine);

/// A sentence where the draft of a fixed mode surely made decoding slower than mode ar: even if
/// ar's passes took as long as the ones that verified proposals. Empty where it did not, or where
/// too little was decoded to tell.
std::string DraftVerdict(Mode mode, const DraftingCosts& costs);

/// Counts, times and rates of one request, for `--json`.
Json StatsJson(const RequestStats& stats);

/// What mode auto did: rounds and predicted against measured speed by mode.
Json PlannerJson(const PlannerReport& report);

/// Hits among cache lookups; negative where there was none.
double HitRate(const RequestStats& stats);

/// A share, or null for a negative one, which stands for "no data".
Json ShareJson(double share);

}  // namespace foretoken
