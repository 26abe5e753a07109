#pragma once

namespace foretoken {

inline constexpr double kNsPerUs = 1e3;
inline constexpr double kNsPerMs = 1e6;
inline constexpr double kUsPerMs = 1e3;

}  // namespace foretoken
