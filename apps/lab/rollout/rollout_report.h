#pragma once

#include <string>

#include "apps/lab/rollout/rollout_session.h"
#include "json/json.h"

namespace foretoken {

/// A few lines for people.
std::string RenderRolloutReport(const RolloutDone& done);

/// The same for programs.
Json RolloutReportJson(const RolloutDone& done);

}  // namespace foretoken
