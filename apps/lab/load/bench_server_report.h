#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/lab/load/bench_server_load.h"
#include "json/json.h"

namespace foretoken {

/// Service-level objectives: what a request must keep to count as good.
struct LoadGoals {
  std::optional<double> ttft_ms;
  std::optional<double> tpot_ms;

  bool any() const { return ttft_ms || tpot_ms; }
  bool MetBy(const LoadRecord& record) const;
};

/// The figures of all `rounds`, the report's "load":
///
///     {"requests", "completed", "errors": {kind: {"count", "example"}}, "duration_s",
///      "peak_in_flight", "output_tokens", "input_tokens", "tokens_counted_by": "usage" | "chunks",
///      "requests_per_s", "output_tokens_per_s", "total_tokens_per_s",
///      "goodput_per_s", "good_share",                        // where there are goals
///      "ttft_ms" | "tpot_ms" | "itl_ms" | "e2e_ms":
///          {"mean", "p50", "p90", "p99", "histogram": [[edge, count], ...]},
///      "draft_tokens", "draft_accepted", "acceptance_rate"}  // where the server tells
///
/// The time between two rounds does not count.
Json LoadJson(const std::vector<std::vector<LoadRecord>>& rounds, const LoadGoals& goals);

/// What each figure means, for the report's "definitions".
Json LoadDefinitions();

/// The figures for a terminal, at most 100 columns wide. `load` is LoadJson's.
std::string RenderLoad(const Json& load);

}  // namespace foretoken
