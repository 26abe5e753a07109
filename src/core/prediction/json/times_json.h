#pragma once

#include "core/prediction/cost_model.h"
#include "json/json_object.h"

namespace foretoken {

constexpr double kMaxTimeUs = 1e9;  ///< In any file.

/// Which tables there are of a draft.
struct DraftTables {
  bool apart = false;
  bool on_target = false;
};

/// `rows`, `contexts` and `us`. Refuses what TimeTable::Make does.
TimeTable ReadTable(JsonObject object);
Json TableJson(const TimeTable& table);

/// What a CostModel holds of times: its tables (whose rows beside a draft are in the contention;
/// those of drafts are called by the registry's names), the host's and the contention. Refuses
/// other fields.
CostModel ReadTimes(JsonObject object, const ByDrafter<DraftTables>& tables);
Json TimesJson(const CostModel& times, const ByDrafter<DraftTables>& tables);

}  // namespace foretoken
