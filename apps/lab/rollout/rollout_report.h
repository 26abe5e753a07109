#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/lab/rollout/rollout_session.h"

namespace foretoken {

/// A few lines for people.
std::string RenderRolloutReport(const RolloutDone& done);

/// The same for programs.
nlohmann::json RolloutReportJson(const RolloutDone& done);

}  // namespace foretoken
