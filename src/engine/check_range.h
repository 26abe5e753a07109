#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

/// Refuses a value outside [low, high]. `what` begins the sentence; `field` is the error's.
inline Status CheckRange(std::string_view what, std::int64_t value, std::int64_t low,
                         std::int64_t high, std::string_view field = {}) {
  if (value >= low && value <= high) return {};
  return InvalidInput(fmt::format("{} must be from {} to {}, not {}", what, low, high, value),
                      std::string(field));
}

}  // namespace foretoken
