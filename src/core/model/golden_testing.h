#pragma once

#include <filesystem>

namespace foretoken {

/// What other programs computed (tests/golden/README.md).
inline std::filesystem::path GoldenFolder() {
  return std::filesystem::path(FORETOKEN_SOURCE_DIR) / "tests/golden";
}

/// How far from their float32 this one's may be.
inline constexpr float kGoldenTolerance = 1e-4F;

}  // namespace foretoken
