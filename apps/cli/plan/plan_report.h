#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "prediction/fallback_rule.h"
#include "prediction/plan_search.h"

namespace foretoken {

/// A plan of the planner and the C it samples its draft with.
struct PlanRow {
  RankedPlan ranked;
  double saguaro_c = 1;
};

/// The plans for one batch size, the fastest first; never empty.
struct PlanTable {
  int batch = 1;
  std::vector<PlanRow> rows;
  std::string reason;
  std::optional<FallbackRule> fallback_rule;  ///< Of the best plan of mode ssd.
};

/// Of every mode, K, fallback and C the plan with the best cache budget.
void KeepBestBudgets(PlanTable* table);

/// The table for people: the first `most` rows and the best of every mode, then the reason.
/// `with_c`: there was a C to choose.
std::string FormatPlanTable(const PlanTable& table, std::size_t most, bool with_c);

nlohmann::json PlanTableJson(const PlanTable& table);

}  // namespace foretoken
