#pragma once

#include <cstdint>

namespace foretoken::cpu {

/// The shapes of the eight tiles: up to 16 rows of up to 64 bytes each.
struct TileShapes {
  std::uint8_t rows[8];
  std::uint8_t row_bytes[8];
};

}  // namespace foretoken::cpu
