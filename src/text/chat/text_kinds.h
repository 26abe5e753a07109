#pragma once

#include <cstddef>

namespace foretoken {

/// Bytes of a function's name at most, with what stands before it.
inline constexpr std::size_t kMaxName = 512;

inline bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// A character of a function's name.
inline bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

}  // namespace foretoken
