#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "text/hub/repository/model_name.h"

namespace foretoken {

/// Whether a hub is asked for a model that is in the cache.
enum class HubQuestion { kWhereNeeded, kAlways };

/// The path of the model of that name and for that use (text/hub/repository/model_name.h), fetching
/// what is missing as the environment's variables say (text/hub/hub_settings.h) and showing so on a
/// terminal. Ctrl-C ends it with an error; what was fetched stays.
Result<std::string> FindHubModel(const ModelName& name, HubQuestion question);

/// What whoever waits for a model elsewhere than at this terminal is asked and told.
struct FetchListener {
  std::function<bool()> cancelled;
  std::function<void(std::uint64_t done, std::uint64_t all)> progress;  ///< In bytes.
};
/// The same for him, the name being written as one types it, and the hub being asked.
Result<std::string> FetchHubModel(const std::string& name, const FetchListener& listener);

}  // namespace foretoken
