#pragma once

#include <bitset>

namespace foretoken {

/// A set of bytes, by their values.
using ByteSet = std::bitset<256>;

inline ByteSet AllBytes() { return ByteSet().set(); }

}  // namespace foretoken
