#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/lab/bench/bench_report.h"

namespace foretoken {

/// The drafters of one set by their speed, fastest first, as a table for a terminal: what each
/// brought (tokens a round, acceptance by position) and what it cost. Empty where drafters were not
/// compared.
std::string RenderRanking(const SetResult& set, const BenchContext& context);

/// The same order, for the set's "ranking": the labels of its modes.
nlohmann::json RankingJson(const SetResult& set, const BenchContext& context);

}  // namespace foretoken
