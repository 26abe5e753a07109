#pragma once

#include <string>

#include "base/result.h"
#include "hub/repository/model_name.h"

namespace foretoken {

/// Whether a hub is asked for a model that is in the cache.
enum class HubQuestion { kWhereNeeded, kAlways };

/// The path of the model of that name and for that use (hub/repository/model_name.h), fetching what
/// is missing as the environment's variables say (hub/hub_settings.h) and showing so on a terminal.
/// Ctrl-C ends it with an error; what was fetched stays.
Result<std::string> FindHubModel(const ModelName& name, HubQuestion question);

}  // namespace foretoken
