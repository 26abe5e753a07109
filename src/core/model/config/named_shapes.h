#pragma once

#include <string_view>

#include "base/result.h"
#include "core/model/config/model_config.h"

namespace foretoken {

/// A named shape for timing studies with random weights: "llama-135m", "llama-1b", "llama-8b",
/// "draft-12m" ... Unknown names list the known ones.
Result<ModelConfig> NamedShape(std::string_view name);

}  // namespace foretoken
