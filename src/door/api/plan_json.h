#pragma once

#include "foretoken/speculation.h"
#include "json/json.h"

namespace foretoken {

/// What of `plan` is said, by the names of plan_fields.inc: names and numbers, and of a fan-out its
/// numbers or its rule.
Json PlanJson(const PlanOptions& plan);

}  // namespace foretoken
