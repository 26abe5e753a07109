#pragma once

#include <string>
#include <vector>

#include "apps/lab/load/bench_server_report.h"
#include "json/json.h"

namespace foretoken {

/// The requests of a mode: each round all of them, in turn with the other modes.
struct ModeLoad {
  std::string mode;
  std::vector<std::vector<LoadRecord>> rounds;
};

/// The report's "modes", in the order given: for each
///
///     {"mode", "load": LoadJson's of all its rounds,
///      "output_tokens_per_s": {"median", "p25", "p75"},  // over the rounds
///      "speedup": {"value", "low", "high"}}              // over the first, round by round
Json ModesJson(const std::vector<ModeLoad>& modes, const LoadGoals& goals);

/// A table with a row for each mode, and what failed. `modes` is ModesJson's.
std::string RenderModes(const Json& modes);

}  // namespace foretoken
