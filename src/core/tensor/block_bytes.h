#pragma once

#include <cstdint>

namespace foretoken {

/// What reading blocks of weights and writing them share.
inline std::uint8_t ByteOf(int value) { return static_cast<std::uint8_t>(value); }

/// A sign bit makes what a file adds what the values are less by.
inline constexpr std::uint16_t kHalfSign = 0x8000;

}  // namespace foretoken
