#pragma once

#include <string_view>

#include "core/model/config/model_config.h"

namespace foretoken {

/// In which of their parts two descriptions compute something else, as a user would call it; empty
/// where they compute the same. Numbers that a float32 has changed are the same.
std::string_view DifferenceOf(const ModelConfig& a, const ModelConfig& b);

}  // namespace foretoken
