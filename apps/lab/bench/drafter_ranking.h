#pragma once

#include <string>

#include "apps/lab/bench/bench_report.h"
#include "json/json.h"

namespace foretoken {

/// The drafters of one set by their speed, fastest first, as a table for a terminal: what each
/// brought (tokens a round, acceptance by position) and what it cost. Empty where drafters were not
/// compared.
std::string RenderRanking(const SetResult& set, const BenchContext& context);

/// The same order, for the set's "ranking": the labels of its modes.
Json RankingJson(const SetResult& set, const BenchContext& context);

}  // namespace foretoken
