#pragma once

#include <string>

#include "apps/lab/rollout/rollout_session.h"
#include "base/result.h"

namespace foretoken {

/// The order of a line such as {"prompts": FILE, "out": FILE, "samples": 8, "seed": 1,
/// "target": PATH}; what is left out but `prompts` and `out` is as `options` say. `place` names the
/// line in errors.
Result<RolloutOrder> ParseRolloutJob(const std::string& line, const RolloutOptions& options,
                                     const std::string& place);

/// Takes the jobs of standard input, a line each, one after the other until its end, and answers
/// each with a line on standard output: its report, or {"error": ...}. Returns the exit code.
int ServeRolloutJobs(const RolloutOptions& options);

}  // namespace foretoken
