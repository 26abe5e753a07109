#pragma once

#include <string_view>

#include "api/study.h"

namespace foretoken {

/// "A" or "A,H": acceptance, and the chance of a hit.
Result<Script> ParseScript(std::string_view text);

}  // namespace foretoken
