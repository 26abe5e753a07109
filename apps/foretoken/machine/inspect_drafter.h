#pragma once

#include <optional>

#include "apps/foretoken/options/options.h"
#include "base/result.h"
#include "json/json.h"

namespace foretoken {

/// What there is to say of a draft that reads its target's states; nothing where the draft is a
/// model like any other. An error where it does not fit the target.
Result<std::optional<Json>> InspectDrafter(const ModelOptions& options);

void PrintDrafter(const Json& figures);

}  // namespace foretoken
