#pragma once

#include <filesystem>

#include "base/result.h"
#include "text/hub/hub_settings.h"
#include "text/hub/repository/model_name.h"
#include "text/hub/transfer/fetch_file.h"

namespace foretoken {

/// Where the model of that name lies in the cache: its folder, or the GGUF file to open. What the
/// cache has is taken without a question as long as the name could mean nothing else; else the hub
/// is asked, and what is missing is fetched. A hub that cannot be reached is done without, with a
/// warning, where the cache has something that fits.
Result<std::filesystem::path> FindModel(const ModelName& name, const HubSettings& settings,
                                        const FetchHooks& hooks);

/// The same, but the hub is always asked what the revision is now, unless HubSettings::offline.
Result<std::filesystem::path> PullModel(const ModelName& name, const HubSettings& settings,
                                        const FetchHooks& hooks);

}  // namespace foretoken
